/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TOPO_FIXTURES_H
#define LCOMM_TESTS_TOPO_FIXTURES_H

/* Machines that are not there, from tests/topo/fixtures. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libcomm/topo/topo.h"

enum { FIXTURE_MAX = 1 << 16 };

/* The text of a fixture; free it. */
static inline char *fixture_text(const char *name) {
  char path[256], *text = calloc(1, FIXTURE_MAX);
  snprintf(path, sizeof(path), "tests/topo/fixtures/%s", name);
  FILE *file = fopen(path, "rb");
  if (!file) {
    print_error("cannot open %s; run the tests from the root of the sources\n", path);
  }
  assert_non_null(file);
  assert_non_null(text);
  assert_true(fread(text, 1, FIXTURE_MAX - 1, file) > 0);
  fclose(file);
  return text;
}

static inline lcomm_topo topo_of_text(const char *text) {
  lcomm_why error;
  lcomm_topo topo;
  if (lcomm_topo_load(text, &topo, &error) != LCOMM_OK) {
    fail_msg("%s", error.text);
  }
  return topo;
}

static inline lcomm_topo topo_of_fixture(const char *name) {
  char *text = fixture_text(name);
  lcomm_topo topo = topo_of_text(text);
  free(text);
  return topo;
}

/* The topology as text; free it. */
static inline char *text_of_topo(const lcomm_topo *topo) {
  size_t size = lcomm_topo_print(topo, NULL, 0) + 1;
  char *text = malloc(size);
  assert_non_null(text);
  assert_int_equal(lcomm_topo_print(topo, text, size), size - 1);
  return text;
}

/* A text that is refused: where, and words of the sentence. */
typedef struct refused_text {
  const char *text;
  int line;
  const char *what;
} refused_text;

static inline void assert_refused(const refused_text *refused) {
  char start[64];
  lcomm_why error = {""};
  lcomm_topo topo;
  snprintf(start, sizeof(start), "topology, line %d: ", refused->line);
  assert_int_equal(lcomm_topo_load(refused->text, &topo, &error), LCOMM_ERR_WIRE);
  if (strncmp(error.text, start, strlen(start)) != 0 || !strstr(error.text, refused->what)) {
    fail_msg("'%s' is refused by: %s", refused->text, error.text);
  }
  lcomm_topo_free(&topo); /* is empty */
}

/* One letter for each class: Self same-Device Nvlink Pcie sHm neT. */
static inline char letter_of_link(lcomm_link link) {
  return "SDNPHT"[link];
}

/* rows: one string of letters for each rank. */
static inline void assert_links(const lcomm_topo *topo, const char *const *rows) {
  for (int a = 0; a < topo->size; a++) {
    assert_int_equal(strlen(rows[a]), topo->size);
    for (int b = 0; b < topo->size; b++) {
      if (letter_of_link(lcomm_topo_link(topo, a, b)) != rows[a][b]) {
        print_error("link between %d and %d\n", a, b);
      }
      assert_int_equal(letter_of_link(lcomm_topo_link(topo, a, b)), rows[a][b]);
    }
  }
}

#endif

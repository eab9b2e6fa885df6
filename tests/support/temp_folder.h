/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TEMP_FOLDER_H
#define LCOMM_TESTS_TEMP_FOLDER_H

/* A folder of its own for a test of cmocka, which is the test's state and goes with it. Included
 * after cmocka.h. */

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/remove_tree.h"

typedef struct folder {
  char path[256];
} folder;

static inline int make_folder(void **state) {
  folder *made = test_calloc(1, sizeof *made);
  const char *parent = getenv("TMPDIR");
  snprintf(made->path, sizeof made->path, "%s/libcomm-test-XXXXXX",
           parent && *parent ? parent : "/tmp");
  *state = made;
  return mkdtemp(made->path) ? 0 : -1;
}

static inline int remove_folder(void **state) {
  int left = remove_tree(((folder *)*state)->path);
  test_free(*state);
  return left;
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

#endif

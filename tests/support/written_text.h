/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_WRITTEN_TEXT_H
#define LCOMM_TESTS_WRITTEN_TEXT_H

/* What code writes into a file, as text. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A file whose text is *text once it is closed; *text is NULL, or of an earlier file, which is
 * freed. One file at a time. */
static inline FILE *open_text(char **text) {
  static size_t size;
  free(*text);
  *text = NULL;
  FILE *file = open_memstream(text, &size);
  assert_non_null(file);
  return file;
}

/* Fields of the line of comma-separated values at `line`; quotes hide commas. */
static inline size_t field_count(const char *line) {
  size_t fields = 1;
  bool quoted = false;
  for (; *line != '\n' && *line != '\0'; line++) {
    quoted ^= *line == '"';
    fields += *line == ',' && !quoted;
  }
  return fields;
}

#endif

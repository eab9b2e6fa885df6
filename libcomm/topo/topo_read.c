/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/topo/topo_read.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

lcomm_status lcomm_topo_wrong(const lcomm_topo_reader *r, const char *format, ...) {
  char what[LCOMM_WHY_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  return lcomm_why_set(r->error, LCOMM_ERR_WIRE, "topology, line %d: %.400s", r->line, what);
}

lcomm_status lcomm_topo_unexpected(const lcomm_topo_reader *r, lcomm_topo_word found,
                                   const char *expected) {
  char shown[LCOMM_HOST_MAX];
  if (found.length == 0) {
    return lcomm_topo_wrong(r, "the line ends where %s is expected; write: %s", expected,
                            r->example);
  }
  lcomm_host_copy(shown, found.text, found.length);
  return lcomm_topo_wrong(r, "'%s' where %s is expected; write: %s", shown, expected, r->example);
}

lcomm_topo_word lcomm_topo_next(lcomm_topo_reader *r) {
  while (*r->at == ' ' || *r->at == '\t') {
    r->at++;
  }
  lcomm_topo_word w = {r->at, strcspn(r->at, " \t\n")};
  r->at += w.length;
  return w;
}

bool lcomm_topo_word_is(lcomm_topo_word w, const char *text) {
  return w.length == strlen(text) && memcmp(w.text, text, w.length) == 0;
}

int lcomm_topo_word_number(lcomm_topo_word w, int bound) {
  int64_t number = 0;
  if (w.length == 0) {
    return -1;
  }
  for (size_t i = 0; i < w.length; i++) {
    if (w.text[i] < '0' || w.text[i] > '9') {
      return -1;
    }
    number = number * 10 + (w.text[i] - '0');
    if (number >= bound) {
      return -1;
    }
  }
  return (int)number;
}

lcomm_status lcomm_topo_expect(lcomm_topo_reader *r, const char *text) {
  char expected[40];
  lcomm_topo_word w = lcomm_topo_next(r);
  snprintf(expected, sizeof expected, "'%s'", text);
  return lcomm_topo_word_is(w, text) ? LCOMM_OK : lcomm_topo_unexpected(r, w, expected);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_FUZZ_PROMISE_H
#define LCOMM_TESTS_SUPPORT_FUZZ_PROMISE_H

/* What all fuzz targets need. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For a target's own loops over elements: a fuzzer learns nothing from them, and
 * following each comparison would take most of its time. */
#if defined(__clang__)
#define FUZZ_UNTRACED __attribute__((no_sanitize("coverage")))
#else
#define FUZZ_UNTRACED
#endif

/* Aborts, which a fuzzer takes for a finding. */
static inline void fuzz_require(bool promise, const char *what) {
  if (promise) {
    return;
  }
  fprintf(stderr, "broken promise: %s\n", what);
  abort();
}

/* Zeroed memory of exactly this size, so that a sanitizer sees one byte too
 * far. Never NULL. */
static inline void *fuzz_allocate(size_t size) {
  void *memory = calloc(size > 0 ? size : 1, 1);
  fuzz_require(memory != NULL, "the test machine has memory");
  return memory;
}

static inline void *fuzz_copy(const void *data, size_t size) {
  void *copy = fuzz_allocate(size);
  if (size > 0) {
    memcpy(copy, data, size);
  }
  return copy;
}

#endif

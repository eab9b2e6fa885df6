/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_KERNEL_SAMPLES_H
#define LCOMM_TESTS_KERNELS_KERNEL_SAMPLES_H

/* Numbers for tests: reproducible, and the awkward ones. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/element.h"

static inline uint64_t sample_u64(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* Roughly normal, standard deviation 1. */
static inline float sample_normal(uint64_t *state) {
  double sum = 0;
  for (int i = 0; i < 12; i++) {
    sum += (double)(sample_u64(state) >> 11) / 9007199254740992.0;
  }
  return (float)(sum - 6.0);
}

/* Any bit pattern: subnormals, huge values, NaN and Inf among them. */
static inline float sample_bits(uint64_t *state) {
  return lcomm_f32_from_bits((uint32_t)(sample_u64(state) >> 16));
}

/* Zeroed memory of exactly this size, so that a sanitizer sees one byte too
 * far. Never NULL. */
static inline void *sample_memory(size_t size) {
  void *memory = calloc(size > 0 ? size : 1, 1);
  assert_non_null(memory);
  return memory;
}

#define SAMPLE_INFINITY lcomm_f32_from_bits(LCOMM_F32_INF_BITS)
#define SAMPLE_NAN lcomm_f32_from_bits(LCOMM_F32_NAN_BITS)

#endif

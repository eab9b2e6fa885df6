/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_CUDA_DENSE_CASES_H
#define LCOMM_TESTS_KERNELS_CUDA_DENSE_CASES_H

/* Views and memory for the tests of the dense kernels, which compare their bytes
 * with those of the codecs and the scalar table. Arrays end where their memory
 * ends, so that a sanitizer sees one element too far. */

#include "tests/kernels/kernel_values.h"

#include <stdbool.h>
#include <stdio.h>

#include "codecs/device_layout.h"
#include "kernels/cuda/cuda_dense.h"
#include "kernels/stripe.h"
#include "tests/codecs/formats.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { SEED = 77, TILE = LCOMM_TILE, VIEW_MOST = 3 * TILE };

/* Part `part` of `parts` of an array of `base` elements, whose first is `offset`
 * elements behind an address that is a multiple of 16. */
typedef struct view {
  uint64_t base;
  uint32_t parts, part, offset;
} view;

static const view views[] = {{1, 1, 0, 0},
                             {2, 1, 0, 1},
                             {31, 1, 0, 0},
                             {33, 1, 0, 2},
                             {127, 1, 0, 0},
                             {128, 1, 0, 0},
                             {129, 1, 0, 3},
                             {511, 1, 0, 0},
                             {512, 1, 0, 0},
                             {513, 1, 0, 1},
                             {TILE - 1, 1, 0, 0},
                             {TILE, 1, 0, 1},
                             {TILE + 1, 1, 0, 0},
                             {2 * TILE + 77, 1, 0, 0},
                             {2 * TILE + 700, 3, 0, 0},
                             {5 * TILE - 3, 3, 1, 0},
                             {4 * TILE + 300, 3, 1, 2},
                             {2 * TILE + 641, 3, 2, 0},
                             {TILE, 2, 1, 0}};

static inline uint64_t view_count(const view *v) {
  return lcomm_stripe_count(v->base, v->parts, v->part);
}

/* Memory for `n` elements at such an address; array_free() frees it. */
static inline float *array_open(const view *v, uint64_t n) {
  float *memory = sample_memory((size_t)(n + v->offset) * sizeof *memory);
  return memory + v->offset;
}

static inline void array_free(const view *v, float *array) {
  free(array - v->offset);
}

static inline float *array_copy(const view *v, const float *array, uint64_t n) {
  float *copy = array_open(v, n);
  memcpy(copy, array, (size_t)n * sizeof *copy);
  return copy;
}

/* The elements of a view in a row, and back. */
static inline void view_gather(const view *v, const float *array, float *local) {
  for (uint64_t i = 0; i < view_count(v); i++) {
    local[i] = array[lcomm_stripe_global(i, v->parts, v->part)];
  }
}

static inline void view_scatter(const view *v, const float *local, float *array) {
  for (uint64_t i = 0; i < view_count(v); i++) {
    array[lcomm_stripe_global(i, v->parts, v->part)] = local[i];
  }
}

/* Memory of a payload at an address that is a multiple of 8 but not of 16, full
 * of ones where nothing was written yet. */
static inline uint8_t *payload_open(const lcomm_format *format, uint64_t n) {
  size_t size = lcomm_payload_size(format, n);
  uint8_t *memory = sample_memory(size + 8);
  memset(memory, 0xff, size + 8);
  return memory + 8;
}

static inline void payload_free(uint8_t *payload) {
  free(payload - 8);
}

static inline lcomm_cuda_code parts_of(const lcomm_format *format, uint64_t n, uint8_t *payload) {
  lcomm_cuda_code parts;
  lcomm_device_layout(format, n, payload, &parts);
  parts.seed = SEED;
  return parts;
}

/* A sentence for whoever reads that a test failed. */
static inline void say_case(const lcomm_format *format, const view *v, const char *what) {
  printf("%s: %s block=%d variant=%d exponent=%d stochastic=%d, base=%llu parts=%u part=%u "
         "offset=%u\n",
         what, format->codec->name, format->block, format->variant, format->exponent,
         format->stochastic, (unsigned long long)v->base, v->parts, v->part, v->offset);
}

static inline void expect_equal_bytes(const void *given, const void *expected, size_t size,
                                      const lcomm_format *format, const view *v, const char *what) {
  if (memcmp(given, expected, size) != 0) {
    say_case(format, v, what);
  }
  assert_memory_equal(given, expected, size);
}

#endif

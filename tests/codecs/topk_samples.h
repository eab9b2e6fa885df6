/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_CODECS_TOPK_SAMPLES_H
#define LCOMM_TESTS_CODECS_TOPK_SAMPLES_H

/* Data, formats and encoders for tests of top-k. */

#include "tests/codecs/topk_shapes.h"
#include "tests/kernels/kernel_samples.h"

/* Data that is hard in one way each. */
typedef float value_of(uint64_t i, uint64_t *random);

static inline float normal(uint64_t i, uint64_t *random) {
  (void)i;
  return sample_normal(random);
}

static inline float zero(uint64_t i, uint64_t *random) {
  (void)random;
  return i % 3 == 0 ? -0.0f : 0.0f;
}

static inline float equal(uint64_t i, uint64_t *random) {
  (void)random;
  return i % 2 == 0 ? 0.5f : -0.5f;
}

static inline float few_levels(uint64_t i, uint64_t *random) {
  (void)i;
  return (float)(int)(sample_u64(random) % 7) - 3.0f;
}

static inline float mostly_zero(uint64_t i, uint64_t *random) {
  (void)i;
  return sample_u64(random) % 500 == 0 ? sample_normal(random) : 0.0f;
}

static inline float ascending(uint64_t i, uint64_t *random) {
  (void)random;
  return (float)i;
}

static inline float any_bits(uint64_t i, uint64_t *random) {
  (void)i;
  return sample_bits(random);
}

/* All that the sample can see is small or large in one period. */
static inline float periodic(uint64_t i, uint64_t *random) {
  return (i % 256 == 0 ? 1000.0f : 1.0f) * sample_normal(random);
}

/* One stretch holds nearly everything, as a row of an embedding does. */
static inline float clustered(uint64_t i, uint64_t *random) {
  return (i / 4096 % 5 == 1 ? 100.0f : 1.0f) * sample_normal(random);
}

static inline float rarely_not_finite(uint64_t i, uint64_t *random) {
  uint64_t dice = sample_u64(random) % 3000;
  if (i % 2 == 0 && dice < 2) {
    return dice == 0 ? SAMPLE_NAN : -SAMPLE_INFINITY;
  }
  return sample_normal(random);
}

static inline float all_nan(uint64_t i, uint64_t *random) {
  (void)i;
  (void)random;
  return SAMPLE_NAN;
}

static value_of *const kinds[] = {normal,    zero,     equal,    few_levels, mostly_zero,
                                  ascending, any_bits, periodic, clustered,  rarely_not_finite,
                                  all_nan};
enum { KINDS = sizeof kinds / sizeof *kinds };

static inline void fill(float *value, uint64_t count, value_of *kind, uint64_t seed) {
  for (uint64_t i = 0; i < count; i++) {
    value[i] = kind(i, &seed);
  }
}

enum { VARIANTS = 2 }; /* LCOMM_VARIANT_PLAIN, LCOMM_TOPK_INT8 */

/* For what depends on the variant alone. */
static inline const lcomm_format *format_of(int variant) {
  static lcomm_format formats[VARIANTS];
  formats[variant] = topk_format(0.01, variant);
  return &formats[variant];
}

static inline lcomm_topk *make(const lcomm_topk_shape *shape) {
  lcomm_topk *topk = NULL;
  assert_int_equal(lcomm_topk_create(shape, &topk), LCOMM_OK);
  assert_non_null(topk);
  return topk;
}

/* Room for the payload of an encoder with one output. */
static inline uint8_t *payload_memory(const lcomm_topk *topk) {
  return sample_memory(lcomm_topk_output_bound(topk, 0));
}

/* An encoder of one view, or of one part of a view that is striped over several, and room for what
 * it writes. */
typedef struct topk_encoder {
  lcomm_format format;
  lcomm_topk *topk;
  uint8_t *payload;
} topk_encoder;

static inline topk_encoder part_encoder(const uint64_t *count, double density, int variant,
                                        uint32_t parts, uint32_t part) {
  topk_encoder e = {.format = topk_format(density, variant)};
  lcomm_topk_shape shape = whole(count, &e.format);
  shape.parts = parts;
  shape.part = part;
  e.topk = make(&shape);
  e.payload = payload_memory(e.topk);
  return e;
}

static inline topk_encoder whole_encoder(const uint64_t *count, double density, int variant) {
  return part_encoder(count, density, variant, 1, 0);
}

static inline void free_encoder(topk_encoder *e) {
  free(e->payload);
  lcomm_topk_destroy(e->topk);
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Top-k of a device: views that are stripes of an array, and views that are split
 * over several payloads, which may have to drop entries. */

#include "tests/kernels/cuda/topk_pair.h"
#include "tests/support/unit_tests.h"

/* -------------------------------------------------------------------- stripes */

static void encode_stripes(uint64_t count, uint32_t parts, pair_mode mode, int variant) {
  const uint64_t ends[] = {count / 3, count / 2, count};
  const lcomm_format format = topk_format(0.02, variant);
  for (uint32_t part = 0; part < parts; part++) {
    const lcomm_topk_shape shape = {.base_count = count,
                                    .parts = parts,
                                    .part = part,
                                    .outputs = 1,
                                    .format = &format,
                                    .segment_ends = ends,
                                    .segments = 3};
    pair p = make_pair(&shape);
    fill(p.base, count, part % 2 == 0 ? clustered : mostly_zero, part + 1);
    fill_residuals(&p, normal, part + 2);
    encode_both(&p, mode);
    free_pair(&p);
  }
}

static void stripes_give_the_same_bytes(void **state) {
  (void)state;
  static const uint64_t counts[] = {0, 100, 4096, 8192, 16385, 60000};
  static const uint32_t parts[] = {2, 3, 7};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    for (size_t j = 0; j < sizeof parts / sizeof *parts; j++) {
      encode_stripes(counts[i], parts[j], (pair_mode)((i + j) % MODES), (int)(i + j) % VARIANTS);
    }
  }
}

/* A stripe long enough for a sample that misleads. */
static void stripes_may_be_misled_too(void **state) {
  (void)state;
  for (int variant = 0; variant < VARIANTS; variant++) {
    const uint64_t count = 60000;
    const lcomm_format format = topk_format(0.01, variant);
    lcomm_topk_shape shape = whole(&count, &format);
    shape.parts = 3;
    shape.part = 1;
    pair p = make_pair(&shape);
    fill(p.base, count, equal, 1);
    encode_both(&p, RELEASE);
    fill(p.base, count, zero, 1);
    encode_both(&p, HOLD);
    free_pair(&p);
  }
}

/* -------------------------------------------------------------------- outputs */

/* Returns how many entries were dropped, all in all. */
static uint64_t split(uint64_t count, uint32_t outputs, value_of *kind, pair_mode mode, int variant,
                      double density) {
  const uint64_t ends[] = {count / 3, count};
  const lcomm_format format = topk_format(density, variant);
  const lcomm_topk_shape shape = {.base_count = count,
                                  .parts = 1,
                                  .outputs = outputs,
                                  .format = &format,
                                  .segment_ends = ends,
                                  .segments = 2};
  pair p = make_pair(&shape);
  uint64_t dropped = 0;
  for (int step = 0; step < 2; step++) {
    fill(p.base, count, kind, 3);
    encode_both(&p, mode);
    dropped += lcomm_topk_total(p.cpu);
    for (uint32_t o = 0; o < outputs; o++) {
      uint32_t sent;
      memcpy(&sent, p.found.payload[o], sizeof sent);
      dropped -= sent;
    }
  }
  free_pair(&p);
  return dropped;
}

static void outputs_give_the_same_bytes(void **state) {
  (void)state;
  static const uint64_t counts[] = {0, 1, 4097, 9000, 50000};
  static const uint32_t outputs[] = {2, 3, 8};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    for (size_t j = 0; j < sizeof outputs / sizeof *outputs; j++) {
      split(counts[i], outputs[j], normal, (pair_mode)((i + j) % OWNER), (int)j % VARIANTS, 0.01);
    }
  }
}

/* Nearly all that is large lies in the tiles of one output of so many. */
enum { SPLIT = 64 };

static float in_one_output(uint64_t i, uint64_t *random) {
  return (i / LCOMM_TILE % SPLIT == 10 ? 100.0f : 1.0f) * sample_normal(random);
}

static float equal_in_one_output(uint64_t i, uint64_t *random) {
  (void)random;
  return i / LCOMM_TILE % SPLIT == 10 ? -2.0f : 1.0f;
}

static float not_finite_in_one_output(uint64_t i, uint64_t *random) {
  uint64_t dice = sample_u64(random) % 2;
  if (i / LCOMM_TILE % SPLIT == 10) {
    return dice == 0 ? SAMPLE_NAN : SAMPLE_INFINITY;
  }
  return sample_normal(random);
}

static void what_does_not_fit_stays_in_the_residual(void **state) {
  (void)state;
  value_of *const hard[] = {in_one_output, equal_in_one_output, not_finite_in_one_output};
  for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
    for (int variant = 0; variant < VARIANTS; variant++) {
      for (int mode = 0; mode < OWNER; mode++) {
        assert_true(split(70000, SPLIT, hard[i], (pair_mode)mode, variant, 0.05) > 0);
      }
    }
  }
}

/* The arguments of one launch have not room for so many. */
static void seventy_outputs_give_the_same_bytes(void **state) {
  (void)state;
  split(300000, OUTPUTS_MAX, clustered, RELEASE, 0, 0.05);
  split(5000, OUTPUTS_MAX, normal, RELEASE, 1, 0.05);
}

/* More entries than one block of threads writes. */
static void long_payloads_give_the_same_bytes(void **state) {
  (void)state;
  for (int variant = 0; variant < VARIANTS; variant++) {
    split(40000, 2, normal, RELEASE, variant, 0.8);
    split(40000, 1, normal, RELEASE, variant, 1.0);
    split(40000, 1, normal, OWNER, variant, 0.9);
  }
}

static void hundred_steps_over_outputs_stay_equal(void **state) {
  (void)state;
  const uint64_t count = 20000;
  const lcomm_format format = topk_format(0.01, 0);
  lcomm_topk_shape shape = whole(&count, &format);
  shape.outputs = 3;
  pair p = make_pair(&shape);
  for (uint64_t step = 1; step <= 100; step++) {
    fill(p.base, count, step % 5 == 0 ? clustered : normal, step);
    encode_both(&p, RELEASE);
  }
  free_pair(&p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(stripes_give_the_same_bytes),
    cmocka_unit_test(stripes_may_be_misled_too),
    cmocka_unit_test(outputs_give_the_same_bytes),
    cmocka_unit_test(what_does_not_fit_stays_in_the_residual),
    cmocka_unit_test(seventy_outputs_give_the_same_bytes),
    cmocka_unit_test(long_payloads_give_the_same_bytes),
    cmocka_unit_test(hundred_steps_over_outputs_stay_equal),
};
RUN_TESTS(tests)

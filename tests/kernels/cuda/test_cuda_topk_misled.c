/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Top-k of a device where the sample misleads: it then has to look at all elements,
 * which decides the time, never the bytes. */

#include "kernels/cuda/cuda_topk_tables.cuh"
#include "tests/kernels/cuda/topk_pair.h"
#include "tests/support/unit_tests.h"

/* Was the sample of the first segment of no use? */
static bool was_misled(const pair *p) {
  const lcomm_cuda_segment *segment = &p->device->tables.segment[0];
  uint32_t found = p->device->tables.search[0].found;
  return found < segment->kept || found > segment->capacity;
}

static value_of *inside, *outside;

/* One kind of values in the lines that are sampled (cuda_topk_sample.cu), another one
 * outside of them. */
static void fill_around_the_sample(pair *p, uint64_t seed) {
  const lcomm_cuda_segment *segment = &p->device->tables.segment[0];
  uint64_t stratum = ((uint64_t)segment->count / LCOMM_TOPK_LINE << 32) / segment->lines;
  fill(p->base, p->shape.base_count, outside, seed);
  for (uint64_t line = 0; line < segment->lines; line++) {
    uint64_t hash = (line + 1) * 0x9e3779b97f4a7c15u >> 32;
    uint64_t begin = line * stratum >> 32, end = (line + 1) * stratum >> 32;
    uint64_t first = (begin + (hash * (end - begin) >> 32)) * LCOMM_TOPK_LINE;
    for (uint64_t i = first; i < first + LCOMM_TOPK_LINE; i++) {
      p->base[i] = inside(i, &seed);
    }
  }
}

static float large(uint64_t i, uint64_t *random) {
  return 1000.0f * normal(i, random);
}

static void mislead(uint64_t count, value_of *in_sample, value_of *elsewhere) {
  inside = in_sample;
  outside = elsewhere;
  for (int variant = 0; variant < VARIANTS; variant++) {
    for (int mode = 0; mode < MODES; mode++) {
      const lcomm_format format = topk_format(0.01, variant);
      const lcomm_topk_shape shape = whole(&count, &format);
      pair p = make_pair(&shape);
      for (uint64_t seed = 1; seed <= 2; seed++) {
        fill_around_the_sample(&p, seed);
        memset(p.expected.residual, 0, count * sizeof(float));
        memset(p.found.residual, 0, count * sizeof(float));
        encode_both(&p, (pair_mode)mode);
        assert_true(was_misled(&p));
      }
      free_pair(&p);
    }
  }
}

static void too_few_candidates_are_no_harm(void **state) {
  (void)state;
  mislead(20000, large, normal);
}

static void too_many_candidates_are_no_harm(void **state) {
  (void)state;
  mislead(20000, normal, large);
  mislead(20000, normal, few_levels);
}

static void floods_of_equal_values_are_no_harm(void **state) {
  (void)state;
  mislead(20000, zero, equal);
  mislead(20000, equal, equal);
  mislead(20000, normal, all_nan);
}

/* By all blocks of a segment. */
static void long_segments_may_be_misled_too(void **state) {
  (void)state;
  const uint64_t count = 140000;
  const lcomm_format format = topk_format(0.002, 0);
  const lcomm_topk_shape shape = whole(&count, &format);
  static const struct {
    value_of *inside, *outside;
  } cases[] = {{large, normal}, {normal, equal}, {zero, mostly_zero}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pair p = make_pair(&shape);
    inside = cases[i].inside;
    outside = cases[i].outside;
    fill_around_the_sample(&p, i + 1);
    encode_both(&p, RELEASE);
    assert_true(was_misled(&p));
    free_pair(&p);
  }
}

/* Only the segments in question take the long way. */
static void a_misled_segment_does_not_disturb_others(void **state) {
  (void)state;
  static const uint64_t ends[] = {9000, 15000, 30000};
  for (int variant = 0; variant < VARIANTS; variant++) {
    const lcomm_format format = topk_format(0.01, variant);
    const lcomm_topk_shape shape = segmented(ends, 3, &format);
    pair p = make_pair(&shape);
    inside = normal;
    outside = large;
    fill_around_the_sample(&p, 3);
    encode_both(&p, RELEASE);
    assert_true(was_misled(&p));
    fill(p.base, ends[2], normal, 4);
    encode_both(&p, RELEASE);
    free_pair(&p);
  }
}

/* Neighbours among float32 numbers; there are few of the larger one. */
static float nearly_equal(uint64_t i, uint64_t *random) {
  (void)random;
  return lcomm_f32_from_bits(i % 100000 == 0 ? 0xbf000001u : 0x3f000000u);
}

/* Positions have more digits there. */
static void longer_views_may_be_misled_too(void **state) {
  (void)state;
  const uint64_t count = (1 << 22) + 5;
  const lcomm_format format = topk_format(0.0001, 0);
  const lcomm_topk_shape shape = whole(&count, &format);
  pair p = make_pair(&shape);
  fill(p.base, count, nearly_equal, 1);
  encode_both(&p, RELEASE);
  assert_true(was_misled(&p));
  free_pair(&p);
}

/* The long way is for what is out of the ordinary. */
static void ordinary_data_does_not_mislead(void **state) {
  (void)state;
  const uint64_t count = 150000;
  static const double densities[] = {0.0005, 0.002, 0.01, 0.05, 0.2, 0.7};
  value_of *const ordinary[] = {normal, clustered, ascending, rarely_not_finite};
  for (size_t i = 0; i < sizeof densities / sizeof *densities; i++) {
    const lcomm_format format = topk_format(densities[i], 0);
    const lcomm_topk_shape shape = whole(&count, &format);
    pair p = make_pair(&shape);
    for (size_t j = 0; j < sizeof ordinary / sizeof *ordinary; j++) {
      fill(p.base, count, ordinary[j], i + 1);
      encode_both(&p, RELEASE);
      assert_false(was_misled(&p));
    }
    free_pair(&p);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(too_few_candidates_are_no_harm),
    cmocka_unit_test(too_many_candidates_are_no_harm),
    cmocka_unit_test(floods_of_equal_values_are_no_harm),
    cmocka_unit_test(long_segments_may_be_misled_too),
    cmocka_unit_test(longer_views_may_be_misled_too),
    cmocka_unit_test(ordinary_data_does_not_mislead),
    cmocka_unit_test(a_misled_segment_does_not_disturb_others),
};
RUN_TESTS(tests)

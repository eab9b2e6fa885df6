/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Top-k: which entries are sent, and what stays in the residual. The bytes of
 * the payload are the matter of test_codecs_topk_payload.c. */

#include "tests/codecs/topk_reference.h"

#include <math.h>

/* Data that is hard in one way each. */
typedef float value_of(uint64_t i, uint64_t *random);

static float normal(uint64_t i, uint64_t *random) {
  (void)i;
  return sample_normal(random);
}

static float zero(uint64_t i, uint64_t *random) {
  (void)random;
  return i % 3 == 0 ? -0.0f : 0.0f;
}

static float equal(uint64_t i, uint64_t *random) {
  (void)random;
  return i % 2 == 0 ? 0.5f : -0.5f;
}

static float few_levels(uint64_t i, uint64_t *random) {
  (void)i;
  return (float)(int)(sample_u64(random) % 7) - 3.0f;
}

static float mostly_zero(uint64_t i, uint64_t *random) {
  (void)i;
  return sample_u64(random) % 500 == 0 ? sample_normal(random) : 0.0f;
}

static float ascending(uint64_t i, uint64_t *random) {
  (void)random;
  return (float)i;
}

static float any_bits(uint64_t i, uint64_t *random) {
  (void)i;
  return sample_bits(random);
}

/* All that the sample can see is small or large in one period. */
static float periodic(uint64_t i, uint64_t *random) {
  return (i % 256 == 0 ? 1000.0f : 1.0f) * sample_normal(random);
}

/* One stretch holds nearly everything, as a row of an embedding does. */
static float clustered(uint64_t i, uint64_t *random) {
  return (i / 4096 % 5 == 1 ? 100.0f : 1.0f) * sample_normal(random);
}

static float rarely_not_finite(uint64_t i, uint64_t *random) {
  uint64_t dice = sample_u64(random) % 3000;
  if (i % 2 == 0 && dice < 2)
    return dice == 0 ? SAMPLE_NAN : -SAMPLE_INFINITY;
  return sample_normal(random);
}

static float all_nan(uint64_t i, uint64_t *random) {
  (void)i;
  (void)random;
  return SAMPLE_NAN;
}

static value_of *const kinds[] = {normal,    zero,     equal,    few_levels, mostly_zero,
                                  ascending, any_bits, periodic, clustered,  rarely_not_finite,
                                  all_nan};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void fill(float *value, uint64_t count, value_of *kind, uint64_t seed) {
  for (uint64_t i = 0; i < count; i++)
    value[i] = kind(i, &seed);
}

static lcomm_topk *make(const lcomm_topk_shape *shape) {
  lcomm_topk *topk = NULL;
  assert_int_equal(lcomm_topk_create(shape, &topk), LCOMM_OK);
  assert_non_null(topk);
  return topk;
}

static lcomm_topk_shape whole(const uint64_t *count, double density) {
  return (lcomm_topk_shape){.base_count = *count,
                            .parts = 1,
                            .outputs = 1,
                            .density = density,
                            .segment_ends = count,
                            .segments = 1};
}

/* With and without a residual, with both ways to keep, two steps each. */
static void check_with(const lcomm_kernels *kernels, const lcomm_topk_shape *shape,
                       value_of *kind) {
  size_t bytes = (size_t)shape->base_count * sizeof(float);
  lcomm_topk *topk = make(shape);
  float *base = sample_memory(bytes), *residual = sample_memory(bytes);
  fill(base, shape->base_count, kind, 1);
  check_encode(topk, shape, kernels, base, NULL, LCOMM_TOPK_RELEASE);
  for (int keep = LCOMM_TOPK_RELEASE; keep <= LCOMM_TOPK_HOLD; keep++) {
    memset(residual, 0, bytes);
    for (uint64_t step = 2; step < 4; step++) {
      fill(base, shape->base_count, kind, step);
      check_encode(topk, shape, kernels, base, residual, (lcomm_topk_keep)keep);
    }
  }
  free(base);
  free(residual);
  lcomm_topk_destroy(topk);
}

static void check_shape(const lcomm_topk_shape *shape, value_of *kind) {
  check_with(lcomm_kernels_best(), shape, kind);
}

static void selection_equals_sorting_everything(void **state) {
  (void)state;
  const uint64_t counts[] = {1, 2, 31, 33, 100, 1023, 1024, 1025, 5000, 40000};
  const double densities[] = {0.0001, 0.01, 0.3, 1.0};
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
    for (size_t d = 0; d < sizeof densities / sizeof *densities; d++)
      for (int kind = 0; kind < KINDS; kind++) {
        lcomm_topk_shape shape = whole(&counts[c], densities[d]);
        check_shape(&shape, kinds[kind]);
      }
}

/* More candidates than there is room for: the long way round. */
static void selection_survives_a_flood_of_equal_values(void **state) {
  (void)state;
  const uint64_t count = 150000;
  lcomm_topk_shape shape = whole(&count, 0.001);
  check_shape(&shape, equal);
  check_shape(&shape, few_levels);
  check_shape(&shape, all_nan);
  check_shape(&shape, mostly_zero);
}

/* Kernels that behave as if the sample had misled: a threshold four times too
 * high finds too few, a threshold of 0 finds all. */
static size_t select_too_few(const float *source, float *residual, size_t n, uint32_t threshold,
                             uint32_t first_index, uint32_t *index, size_t capacity) {
  return lcomm_kernels_scalar.accumulate_select(source, residual, n, threshold + 0x01000000u,
                                                first_index, index, capacity);
}

static size_t select_all(const float *source, float *residual, size_t n, uint32_t threshold,
                         uint32_t first_index, uint32_t *index, size_t capacity) {
  (void)threshold;
  return lcomm_kernels_scalar.accumulate_select(source, residual, n, 0, first_index, index,
                                                capacity);
}

static void a_misleading_sample_changes_nothing(void **state) {
  (void)state;
  const uint64_t ends[] = {3000, 61000};
  lcomm_kernels too_few = lcomm_kernels_scalar, all = lcomm_kernels_scalar;
  too_few.accumulate_select = select_too_few;
  all.accumulate_select = select_all;
  for (uint32_t parts = 1; parts <= 2; parts++) {
    lcomm_topk_shape shape = {.base_count = 61000,
                              .parts = parts,
                              .part = parts - 1,
                              .outputs = 1,
                              .density = 0.01,
                              .segment_ends = ends,
                              .segments = 2};
    check_with(&too_few, &shape, normal);
    check_with(&too_few, &shape, rarely_not_finite);
    check_with(&too_few, &shape, clustered);
    check_with(&all, &shape, normal);
    check_with(&all, &shape, few_levels);
    check_with(&all, &shape, mostly_zero);
  }
}

static void no_elements_give_an_empty_payload(void **state) {
  (void)state;
  const uint64_t count = 0;
  lcomm_topk_shape shape = whole(&count, 0.01);
  check_shape(&shape, normal);
}

static void segments_keep_their_own_share(void **state) {
  (void)state;
  const uint64_t ends[] = {0, 10, 10, 3000, 3001, 20000, 20000};
  for (int kind = 0; kind < KINDS; kind++) {
    lcomm_topk_shape shape = {.base_count = 20000,
                              .parts = 1,
                              .outputs = 1,
                              .density = 0.01,
                              .segment_ends = ends,
                              .segments = 7};
    check_shape(&shape, kinds[kind]);
  }
}

static void stripes_select_among_their_own_elements(void **state) {
  (void)state;
  const uint64_t ends[] = {5000, 5001, 9000, 30011};
  for (uint32_t part = 0; part < 3; part++)
    for (int kind = 0; kind < KINDS; kind++) {
      lcomm_topk_shape shape = {.base_count = 30011,
                                .parts = 3,
                                .part = part,
                                .outputs = 1,
                                .density = 0.02,
                                .segment_ends = ends,
                                .segments = 4};
      check_shape(&shape, kinds[kind]);
    }
}

/* Part 0 has one tile and one element of the next one. */
static void a_run_ends_where_its_tile_ends(void **state) {
  (void)state;
  const uint64_t ends[] = {3 * LCOMM_TILE + 1, 5 * LCOMM_TILE};
  lcomm_topk_shape shape = {.base_count = 5 * LCOMM_TILE,
                            .parts = 3,
                            .outputs = 1,
                            .density = 0.01,
                            .segment_ends = ends,
                            .segments = 2};
  check_shape(&shape, ascending);
}

static void stripes_without_elements_are_empty(void **state) {
  (void)state;
  const uint64_t count = 100;
  lcomm_topk_shape shape = whole(&count, 0.1);
  shape.parts = 3;
  shape.part = 2;
  check_shape(&shape, normal);
}

/* clustered puts nearly all into one output, which overflows. */
static void outputs_hold_what_fits_largest_first(void **state) {
  (void)state;
  const uint64_t ends[] = {7000, 81000};
  for (uint32_t outputs = 2; outputs <= 5; outputs++)
    for (int kind = 0; kind < KINDS; kind++) {
      lcomm_topk_shape shape = {.base_count = 81000,
                                .parts = 1,
                                .outputs = outputs,
                                .density = 0.05,
                                .segment_ends = ends,
                                .segments = 2};
      check_shape(&shape, kinds[kind]);
    }
}

static void more_outputs_than_tiles_leave_some_empty(void **state) {
  (void)state;
  const uint64_t count = 5000;
  lcomm_topk_shape shape = whole(&count, 0.5);
  shape.outputs = 8;
  check_shape(&shape, normal);
}

/* 100 steps of error feedback with gradients that grow, shrink and jump. A
 * fresh encoder in every step must send the same: no step depends on what
 * thresholds were found before. */
static void results_do_not_depend_on_history(void **state) {
  (void)state;
  enum { N = 12000 };
  const uint64_t ends[] = {4000, N};
  lcomm_topk_shape shape = {.base_count = N,
                            .parts = 1,
                            .outputs = 2,
                            .density = 0.01,
                            .segment_ends = ends,
                            .segments = 2};
  static float base[N], residual[N];
  memset(residual, 0, sizeof residual);
  lcomm_topk *topk = make(&shape);
  for (uint64_t step = 1; step <= 100; step++) {
    fill(base, N, step % 17 == 0 ? rarely_not_finite : normal, step);
    float scale = step % 30 < 15 ? 1.0f : 1e-3f;
    for (size_t i = 0; i < N; i++)
      base[i] *= step % 41 == 0 ? 1e4f : scale;
    if (step % 5 == 0) {
      lcomm_topk_destroy(topk);
      topk = make(&shape);
    }
    check_encode(topk, &shape, lcomm_kernels_best(), base, residual, LCOMM_TOPK_RELEASE);
  }
  lcomm_topk_destroy(topk);
}

/* Residuals */

static void sent_and_residual_make_up_what_came_in(void **state) {
  (void)state;
  enum { N = 9000 };
  const uint64_t count = N;
  lcomm_topk_shape shape = whole(&count, 0.02);
  lcomm_topk *topk = make(&shape);
  uint8_t *payload = sample_memory(lcomm_topk_output_bound(topk, 0));
  static float base[N], residual[N], sent[N];
  static double given[N], applied[N];
  for (uint64_t step = 1; step <= 60; step++) {
    size_t size;
    fill(base, N, normal, step);
    lcomm_topk_encode(topk, lcomm_kernels_best(), base, residual, LCOMM_TOPK_RELEASE, &payload,
                      &size);
    lcomm_topk_decode(payload, N, 1, 0, 1.0f, sent);
    for (size_t i = 0; i < N; i++) {
      given[i] += (double)base[i];
      applied[i] += (double)sent[i];
    }
  }
  for (size_t i = 0; i < N; i++)
    assert_true(fabs(given[i] - applied[i] - (double)residual[i]) <= 1e-4);
  free(payload);
  lcomm_topk_destroy(topk);
}

static void settling_a_held_payload_is_releasing_it(void **state) {
  (void)state;
  enum { N = 30000 };
  const uint64_t count = N;
  for (uint32_t part = 0; part < 2; part++) {
    lcomm_topk_shape shape = whole(&count, 0.03);
    shape.parts = 2;
    shape.part = part;
    lcomm_topk *topk = make(&shape);
    uint8_t *payload = sample_memory(lcomm_topk_output_bound(topk, 0));
    static float base[N], held[N], released[N];
    size_t size;
    fill(base, N, rarely_not_finite, 5);
    fill(held, N, normal, 6);
    memcpy(released, held, sizeof held);
    lcomm_topk_encode(topk, lcomm_kernels_best(), base, released, LCOMM_TOPK_RELEASE, &payload,
                      &size);
    lcomm_topk_encode(topk, lcomm_kernels_best(), base, held, LCOMM_TOPK_HOLD, &payload, &size);
    lcomm_topk_settle(payload, NULL, 2, part, held);
    assert_memory_equal(held, released, sizeof held);
    free(payload);
    lcomm_topk_destroy(topk);
  }
}

static void settle_takes_only_what_was_applied(void **state) {
  (void)state;
  enum { N = 20000 };
  const uint64_t count = N;
  lcomm_topk_shape shape = whole(&count, 0.05);
  lcomm_topk *topk = make(&shape);
  uint8_t *sent = sample_memory(lcomm_topk_output_bound(topk, 0));
  uint8_t *applied = sample_memory(lcomm_topk_output_bound(topk, 0));
  static float base[N], other[N], residual[N], before[N], mine[N], theirs[N];
  size_t size;
  fill(base, N, normal, 1);
  for (size_t i = 0; i < N; i++) /* the two agree on about half */
    other[i] = i % 2 == 0 ? base[i] : base[N - 1 - i];
  lcomm_topk_encode(topk, lcomm_kernels_best(), base, residual, LCOMM_TOPK_HOLD, &sent, &size);
  lcomm_topk_encode(topk, lcomm_kernels_best(), other, NULL, LCOMM_TOPK_HOLD, &applied, &size);
  lcomm_topk_decode(sent, N, 1, 0, 1.0f, mine);
  lcomm_topk_decode(applied, N, 1, 0, 1.0f, theirs);
  memcpy(before, residual, sizeof before);
  lcomm_topk_settle(sent, applied, 1, 0, residual);
  size_t common = 0;
  for (size_t i = 0; i < N; i++) {
    bool both = mine[i] != 0.0f && theirs[i] != 0.0f;
    common += both;
    assert_true(residual[i] == (both ? before[i] - mine[i] : before[i]));
  }
  assert_in_range(common, 100, 900);
  free(sent);
  free(applied);
  lcomm_topk_destroy(topk);
}

static void one_bad_gradient_leaves_no_trace(void **state) {
  (void)state;
  enum { N = 5000 };
  const uint64_t count = N;
  lcomm_topk_shape shape = whole(&count, 0.01);
  lcomm_topk *topk = make(&shape);
  uint8_t *payload = sample_memory(lcomm_topk_output_bound(topk, 0));
  static float base[N], residual[N], sent[N];
  size_t size;
  fill(base, N, all_nan, 1);
  lcomm_topk_encode(topk, lcomm_kernels_best(), base, residual, LCOMM_TOPK_HOLD, &payload, &size);
  lcomm_topk_decode(payload, N, 1, 0, 1.0f, sent);
  assert_true(isnan(sent[0])); /* the peers are told */
  for (size_t i = 0; i < N; i++)
    assert_true(residual[i] == 0.0f);
  free(payload);
  lcomm_topk_destroy(topk);
}

static void finite_values_are_never_sent_as_infinite(void **state) {
  (void)state;
  const uint64_t count = 3;
  lcomm_topk_shape shape = whole(&count, 1.0);
  lcomm_topk *topk = make(&shape);
  uint8_t *payload = sample_memory(lcomm_topk_output_bound(topk, 0));
  const float base[] = {3.4028235e38f, -3.4028235e38f, 1.0f};
  float residual[3] = {0}, sent[3];
  size_t size;
  lcomm_topk_encode(topk, lcomm_kernels_best(), base, residual, LCOMM_TOPK_RELEASE, &payload,
                    &size);
  lcomm_topk_decode(payload, 3, 1, 0, 1.0f, sent);
  for (int i = 0; i < 3; i++) {
    assert_true(isfinite(sent[i]));
    assert_true(sent[i] + residual[i] == base[i]);
  }
  assert_true(residual[0] > 0.0f && residual[1] < 0.0f && residual[2] == 0.0f);
  free(payload);
  lcomm_topk_destroy(topk);
}

static void owner_keeps_the_weighted_error_of_what_it_sent(void **state) {
  (void)state;
  enum { N = 20000 };
  const uint64_t count = N;
  lcomm_topk_shape shape = whole(&count, 0.02);
  shape.parts = 2;
  shape.part = 1;
  lcomm_topk *topk = make(&shape);
  uint8_t *payload = sample_memory(lcomm_topk_output_bound(topk, 0));
  uint8_t *plain = sample_memory(lcomm_topk_output_bound(topk, 0));
  static float base[N], residual[N], before[N], sent[N];
  size_t size, plain_size;
  fill(base, N, rarely_not_finite, 1);
  fill(residual, N, normal, 2);
  memcpy(before, residual, sizeof before);
  lcomm_topk_encode(topk, lcomm_kernels_best(), base, NULL, LCOMM_TOPK_HOLD, &plain, &plain_size);
  lcomm_topk_encode_owner(topk, lcomm_kernels_best(), base, residual, 4.0f, payload, &size);
  assert_int_equal(size, plain_size);
  assert_memory_equal(payload, plain, size);
  lcomm_topk_decode(payload, N, 2, 1, 1.0f, sent);
  for (size_t i = 0; i < N; i++) {
    bool chosen = lcomm_stripe_owner(i, 2) == 1 && sent[i] != 0.0f && isfinite(sent[i]);
    assert_true(residual[i] == (chosen ? before[i] + 4.0f * (base[i] - sent[i]) : before[i]));
  }
  lcomm_topk_encode_owner(topk, lcomm_kernels_best(), base, NULL, 4.0f, payload, &size);
  assert_memory_equal(payload, plain, size);
  free(payload);
  free(plain);
  lcomm_topk_destroy(topk);
}

/* Shapes and numbers */

static void bad_shapes_are_refused(void **state) {
  (void)state;
  const uint64_t ends[] = {10, 20}, falling[] = {15, 10, 20};
  const lcomm_topk_shape good = {.base_count = 20,
                                 .parts = 1,
                                 .outputs = 1,
                                 .density = 0.5,
                                 .segment_ends = ends,
                                 .segments = 2};
  lcomm_topk_shape bad[12];
  for (int i = 0; i < 12; i++)
    bad[i] = good;
  bad[0].base_count = 21;
  bad[1].base_count = (uint64_t)1 << 32;
  bad[2].parts = 0;
  bad[3].part = 1;
  bad[4].outputs = 0;
  bad[5].outputs = 2, bad[5].parts = 2;
  bad[6].density = 0.0;
  bad[7].density = 1.5;
  bad[8].density = (double)NAN;
  bad[9].segments = 0;
  bad[10].segment_ends = NULL;
  bad[11].segment_ends = falling, bad[11].segments = 3;
  lcomm_topk *topk = NULL;
  for (int i = 0; i < 12; i++) {
    assert_int_equal(lcomm_topk_create(&bad[i], &topk), LCOMM_ERR_ARGUMENT);
    assert_null(topk);
  }
  assert_int_equal(lcomm_topk_create(NULL, &topk), LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_topk_create(&good, NULL), LCOMM_ERR_ARGUMENT);
  lcomm_topk_destroy(NULL);
}

static void entries_are_density_times_count_rounded(void **state) {
  (void)state;
  assert_int_equal(lcomm_topk_entries(0.01, 0), 0);
  assert_int_equal(lcomm_topk_entries(0.01, 1), 1);
  assert_int_equal(lcomm_topk_entries(0.01, 149), 1);
  assert_int_equal(lcomm_topk_entries(0.01, 151), 2);
  assert_int_equal(lcomm_topk_entries(0.5, 3), 2);
  assert_int_equal(lcomm_topk_entries(1.0, 12345), 12345);
  assert_int_equal(lcomm_topk_entries(7.0, 10), 10);
  assert_int_equal(lcomm_topk_entries(-1.0, 10), 1);
  assert_int_equal(lcomm_topk_entries(0.01, 4000000000u), 40000000);
}

static void capacity_is_a_fair_share_and_a_quarter(void **state) {
  (void)state;
  assert_int_equal(lcomm_topk_capacity(1000, 1, 5), 1000);
  assert_int_equal(lcomm_topk_capacity(1000, 4, 100000), 376);
  assert_int_equal(lcomm_topk_capacity(1000, 4, 200), 200);
  assert_int_equal(lcomm_topk_capacity(0, 4, 0), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(selection_equals_sorting_everything),
      cmocka_unit_test(selection_survives_a_flood_of_equal_values),
      cmocka_unit_test(a_misleading_sample_changes_nothing),
      cmocka_unit_test(no_elements_give_an_empty_payload),
      cmocka_unit_test(segments_keep_their_own_share),
      cmocka_unit_test(stripes_select_among_their_own_elements),
      cmocka_unit_test(a_run_ends_where_its_tile_ends),
      cmocka_unit_test(stripes_without_elements_are_empty),
      cmocka_unit_test(outputs_hold_what_fits_largest_first),
      cmocka_unit_test(more_outputs_than_tiles_leave_some_empty),
      cmocka_unit_test(results_do_not_depend_on_history),
      cmocka_unit_test(sent_and_residual_make_up_what_came_in),
      cmocka_unit_test(settling_a_held_payload_is_releasing_it),
      cmocka_unit_test(settle_takes_only_what_was_applied),
      cmocka_unit_test(one_bad_gradient_leaves_no_trace),
      cmocka_unit_test(finite_values_are_never_sent_as_infinite),
      cmocka_unit_test(owner_keeps_the_weighted_error_of_what_it_sent),
      cmocka_unit_test(bad_shapes_are_refused),
      cmocka_unit_test(entries_are_density_times_count_rounded),
      cmocka_unit_test(capacity_is_a_fair_share_and_a_quarter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

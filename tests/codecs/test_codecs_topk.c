/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Top-k: which entries are sent. What stays in the residual is the matter of
 * test_codecs_topk_residual.c, the bytes of the payload of
 * test_codecs_topk_payload.c. */

#include "tests/codecs/topk_reference.h"
#include "tests/codecs/topk_samples.h"
#include "tests/support/unit_tests.h"

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

/* In every variant. */
static void check_shape(const lcomm_topk_shape *shape, value_of *kind) {
  for (int variant = 0; variant < VARIANTS; variant++) {
    lcomm_format format = *shape->format;
    lcomm_topk_shape varied = *shape;
    format.variant = (uint8_t)variant;
    varied.format = &format;
    check_with(lcomm_kernels_best(), &varied, kind);
  }
}

/* Of one segment. */
static void check_whole(uint64_t count, double density, value_of *kind) {
  const lcomm_format format = topk_format(density, LCOMM_VARIANT_PLAIN);
  lcomm_topk_shape shape = whole(&count, &format);
  check_shape(&shape, kind);
}

static void selection_equals_sorting_everything(void **state) {
  (void)state;
  const uint64_t counts[] = {1, 2, 31, 33, 129, 1025, 4095, 4096, 4097, 40000};
  const double densities[] = {0.0001, 0.01, 0.3, 1.0};
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
    for (size_t d = 0; d < sizeof densities / sizeof *densities; d++) {
      for (int kind = 0; kind < KINDS; kind++) {
        check_whole(counts[c], densities[d], kinds[kind]);
      }
    }
  }
}

/* Peaks that no sample sees, the last ones behind more than there is room for. */
static float rare_peaks(uint64_t i, uint64_t *random) {
  (void)random;
  return i % 1500 == 1499 ? 1.0f + (float)i : 0.5f;
}

/* More candidates than there is room for: the long way round. */
static void selection_survives_a_flood_of_equal_values(void **state) {
  (void)state;
  value_of *const floods[] = {equal, few_levels, rare_peaks, all_nan, mostly_zero};
  for (size_t i = 0; i < sizeof floods / sizeof *floods; i++) {
    check_whole(150000, 0.001, floods[i]);
  }
}

/* Kernels that behave as if the sample had misled: a threshold four times too
 * high finds too few, at the first attempt or ever. */
static size_t select_too_few(const float *source, const float *before, float *residual, size_t n,
                             uint32_t threshold, uint32_t first_index, uint32_t *index,
                             size_t capacity) {
  return lcomm_kernels_scalar.ef.accumulate_select(
      source, before, residual, n, threshold + 0x01000000u, first_index, index, capacity);
}

static size_t select_too_few_at_first(const float *source, const float *before, float *residual,
                                      size_t n, uint32_t threshold, uint32_t first_index,
                                      uint32_t *index, size_t capacity) {
  uint32_t raised = residual ? threshold + 0x01000000u : threshold;
  return lcomm_kernels_scalar.ef.accumulate_select(source, before, residual, n, raised, first_index,
                                                   index, capacity);
}

static void a_misleading_sample_changes_nothing(void **state) {
  (void)state;
  const lcomm_format format = topk_format(0.01, LCOMM_VARIANT_PLAIN);
  const uint64_t ends[] = {3000, 61000};
  lcomm_kernels too_few = lcomm_kernels_scalar, at_first = too_few;
  too_few.ef.accumulate_select = select_too_few;
  at_first.ef.accumulate_select = select_too_few_at_first;
  for (uint32_t parts = 1; parts <= 2; parts++) {
    lcomm_topk_shape shape = {.base_count = 61000,
                              .parts = parts,
                              .part = parts - 1,
                              .outputs = 1,
                              .format = &format,
                              .segment_ends = ends,
                              .segments = 2};
    check_with(&too_few, &shape, normal);
    check_with(&too_few, &shape, rarely_not_finite);
    check_with(&too_few, &shape, clustered);
    check_with(&at_first, &shape, normal);
    check_with(&at_first, &shape, rarely_not_finite);
    check_with(&at_first, &shape, clustered);
  }
}

static void no_elements_give_an_empty_payload(void **state) {
  (void)state;
  check_whole(0, 0.01, normal);
}

static void segments_keep_their_own_share(void **state) {
  (void)state;
  const lcomm_format format = topk_format(0.01, LCOMM_VARIANT_PLAIN);
  const uint64_t ends[] = {0, 10, 10, 3000, 3001, 20000, 20000};
  for (int kind = 0; kind < KINDS; kind++) {
    const lcomm_topk_shape shape = segmented(ends, 7, &format);
    check_shape(&shape, kinds[kind]);
  }
}

/* Densities of its own for each segment, or a number of values. */
static void segments_may_have_their_own_density(void **state) {
  (void)state;
  const uint64_t ends[] = {0, 6000, 6010, 20000};
  const double densities[] = {0.0, 0.002, 1.0, 0.05}; /* of an empty one: any */
  lcomm_format format = topk_format(0.5, LCOMM_VARIANT_PLAIN);
  for (uint32_t part = 0; part < 2; part++) {
    lcomm_topk_shape shape = whole(&ends[3], &format);
    shape.parts = 2;
    shape.part = part;
    shape.segment_ends = ends;
    shape.segment_densities = densities;
    shape.segments = 4;
    check_shape(&shape, normal);
    check_shape(&shape, any_bits);
  }
  lcomm_topk_shape shape = whole(&ends[3], &format);
  shape.segment_ends = ends;
  shape.segments = 4;
  format.density = 0.0;
  format.kept = 77;
  check_shape(&shape, normal);
  lcomm_topk *topk = make(&shape);
  assert_int_equal(lcomm_topk_total(topk), 77 + 10 + 77);
  lcomm_topk_destroy(topk);
}

static void stripes_select_among_their_own_elements(void **state) {
  (void)state;
  const lcomm_format format = topk_format(0.02, LCOMM_VARIANT_PLAIN);
  const uint64_t ends[] = {5000, 5001, 9000, 30011};
  for (uint32_t part = 0; part < 3; part++) {
    for (int kind = 0; kind < KINDS; kind++) {
      lcomm_topk_shape shape = segmented(ends, 4, &format);
      shape.parts = 3;
      shape.part = part;
      check_shape(&shape, kinds[kind]);
    }
  }
}

/* Part 0 has one tile and one element of the next one. */
static void a_run_ends_where_its_tile_ends(void **state) {
  (void)state;
  const lcomm_format format = topk_format(0.01, LCOMM_VARIANT_PLAIN);
  const uint64_t ends[] = {3 * LCOMM_TILE + 1, 5 * LCOMM_TILE};
  lcomm_topk_shape shape = segmented(ends, 2, &format);
  shape.parts = 3;
  check_shape(&shape, ascending);
}

static void stripes_without_elements_are_empty(void **state) {
  (void)state;
  const uint64_t count = 100;
  const lcomm_format format = topk_format(0.1, LCOMM_VARIANT_PLAIN);
  lcomm_topk_shape shape = whole(&count, &format);
  shape.parts = 3;
  shape.part = 2;
  check_shape(&shape, normal);
}

/* Nearly all that is large lies in the tile of one output, which has not room for it all. */
static float in_one_tile(uint64_t i, uint64_t *random) {
  return (i / LCOMM_TILE == 5 ? 100.0f : 1.0f) * sample_normal(random);
}

static void outputs_hold_what_fits_largest_first(void **state) {
  (void)state;
  const lcomm_format format = topk_format(0.05, LCOMM_VARIANT_PLAIN);
  const uint64_t ends[] = {7000, 81000};
  const uint32_t outputs[] = {2, 9, 200};
  for (int i = 0; i < 3; i++) {
    lcomm_topk_shape shape = {.base_count = 81000,
                              .parts = 1,
                              .outputs = outputs[i],
                              .format = &format,
                              .segment_ends = ends,
                              .segments = 2};
    for (int kind = 0; kind < KINDS; kind++) {
      check_shape(&shape, kinds[kind]);
    }
    check_shape(&shape, in_one_tile);
  }
  assert_true(lcomm_topk_capacity(4050, 200, LCOMM_TILE) < 3600); /* of 200, it did not fit */
}

/* Half of what is picked lies in tile 0, which is the first output's. */
static void what_finds_no_room_is_counted_by_segment(void **state) {
  (void)state;
  enum { N = 40000, PICKED = 1000, OUTPUTS = 1024 };
  const lcomm_format format = topk_format(0.025, LCOMM_VARIANT_PLAIN);
  const uint64_t ends[] = {0, N / 2, N};
  lcomm_topk_shape shape = {.base_count = N,
                            .parts = 1,
                            .outputs = OUTPUTS,
                            .format = &format,
                            .segment_ends = ends,
                            .segments = 3};
  static float base[N];
  static uint8_t memory[OUTPUTS][8 * PICKED];
  uint8_t *payload[OUTPUTS];
  size_t size[OUTPUTS];
  lcomm_topk *topk = NULL;
  assert_int_equal(lcomm_topk_create(&shape, &topk), LCOMM_OK);
  for (uint32_t o = 0; o < OUTPUTS; o++) {
    payload[o] = memory[o];
    assert_true(lcomm_topk_output_bound(topk, o) <= sizeof(memory[o]));
  }
  for (int step = 0; step < 3; step++) {
    for (int i = 0; i < N; i++) {
      bool in_first_tile = i < PICKED / 2 && step < 2;
      base[i] = in_first_tile || (i % 40 == 7 && (step == 2 || i >= N / 2)) ? 1 + (float)i : 0;
    }
    lcomm_topk_encode(topk, lcomm_kernels_best(), base, NULL, NULL, LCOMM_TOPK_RELEASE, payload,
                      size);
    uint64_t waited = lcomm_topk_segment_waited(topk, 0) + lcomm_topk_segment_waited(topk, 1);
    uint64_t sent = 0;
    for (int o = 0; o < OUTPUTS; o++) {
      uint64_t entries = 0, count = lcomm_stripe_count(N, OUTPUTS, (uint32_t)o);
      assert_int_equal(lcomm_topk_check(&format, payload[o], size[o], count, &entries), LCOMM_OK);
      sent += entries;
    }
    assert_int_equal(sent + waited, PICKED);
    assert_true(step == 2 ? waited == 0 : lcomm_topk_segment_waited(topk, 0) > 100);
  }
  lcomm_topk_destroy(topk);
}

static void more_outputs_than_tiles_leave_some_empty(void **state) {
  (void)state;
  const uint64_t count = 5000;
  const lcomm_format format = topk_format(0.5, LCOMM_VARIANT_PLAIN);
  lcomm_topk_shape shape = whole(&count, &format);
  shape.outputs = 8;
  check_shape(&shape, normal);
}

/* 100 steps of error feedback with gradients that grow, shrink and jump. A
 * fresh encoder in every step must send the same: no step depends on what
 * thresholds were found before. */
static void results_do_not_depend_on_history(void **state) {
  (void)state;
  const lcomm_format format = topk_format(0.01, LCOMM_VARIANT_PLAIN);
  enum { N = 12000 };
  const uint64_t ends[] = {4000, N};
  lcomm_topk_shape shape = segmented(ends, 2, &format);
  shape.outputs = 2;
  static float base[N], residual[N];
  memset(residual, 0, sizeof residual);
  lcomm_topk *topk = make(&shape);
  for (uint64_t step = 1; step <= 100; step++) {
    fill(base, N, step % 17 == 0 ? rarely_not_finite : normal, step);
    float scale = step % 30 < 15 ? 1.0f : 1e-3f;
    for (size_t i = 0; i < N; i++) {
      base[i] *= step % 41 == 0 ? 1e4f : scale;
    }
    if (step % 5 == 0) {
      lcomm_topk_destroy(topk);
      topk = make(&shape);
    }
    check_encode(topk, &shape, lcomm_kernels_best(), base, residual, LCOMM_TOPK_RELEASE);
  }
  lcomm_topk_destroy(topk);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(selection_equals_sorting_everything),
    cmocka_unit_test(selection_survives_a_flood_of_equal_values),
    cmocka_unit_test(a_misleading_sample_changes_nothing),
    cmocka_unit_test(no_elements_give_an_empty_payload),
    cmocka_unit_test(segments_keep_their_own_share),
    cmocka_unit_test(segments_may_have_their_own_density),
    cmocka_unit_test(stripes_select_among_their_own_elements),
    cmocka_unit_test(a_run_ends_where_its_tile_ends),
    cmocka_unit_test(stripes_without_elements_are_empty),
    cmocka_unit_test(outputs_hold_what_fits_largest_first),
    cmocka_unit_test(what_finds_no_room_is_counted_by_segment),
    cmocka_unit_test(more_outputs_than_tiles_leave_some_empty),
    cmocka_unit_test(results_do_not_depend_on_history),
};
RUN_TESTS(tests)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Top-k: which shapes there are, and the numbers that follow from them. */

#include "kernels/stripe.h"
#include "tests/codecs/topk_samples.h"
#include "tests/support/unit_tests.h"

#include <math.h>

static void bad_shapes_are_refused(void **state) {
  (void)state;
  const uint64_t ends[] = {10, 20}, falling[] = {15, 10, 20};
  const double none[] = {0.5, 0.0}, above[] = {1.1, 1.0};
  const lcomm_format format = topk_format(0.5, LCOMM_VARIANT_PLAIN);
  const lcomm_format zero = topk_format(0.0, 0), more = topk_format(1.5, 0);
  const lcomm_format nan = topk_format((double)NAN, 0), unknown = topk_format(0.5, VARIANTS);
  const lcomm_format dense = lcomm_format_of(&lcomm_codec_bf16);
  const lcomm_topk_shape good = {.base_count = 20,
                                 .parts = 1,
                                 .outputs = 1,
                                 .format = &format,
                                 .segment_ends = ends,
                                 .segments = 2};
  lcomm_topk_shape bad[17];
  for (int i = 0; i < 17; i++) {
    bad[i] = good;
  }
  bad[0].base_count = 21;
  bad[1].base_count = (uint64_t)1 << 32;
  bad[2].parts = 0;
  bad[3].part = 1;
  bad[4].outputs = 0;
  bad[5].outputs = 2, bad[5].parts = 2;
  bad[6].format = &zero;
  bad[7].format = &more;
  bad[8].format = &nan;
  bad[9].segments = 0;
  bad[10].segment_ends = NULL;
  bad[11].segment_ends = falling, bad[11].segments = 3;
  bad[12].format = NULL;
  bad[13].format = &unknown;
  bad[14].format = &dense;
  bad[15].segment_densities = none;
  bad[16].segment_densities = above;
  lcomm_topk *topk = NULL;
  for (int i = 0; i < 17; i++) {
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

/* A share of 625 of tiles that are picked whole or not at all deviates by the root of 625 * 4096.
 */
static void capacity_is_eight_shares_and_three_deviations(void **state) {
  (void)state;
  assert_int_equal(lcomm_topk_capacity(1000, 1, 5), 1000);
  assert_int_equal(lcomm_topk_capacity(40000, 64, 100000), 5000 + 64 + 3 * 1600);
  assert_int_equal(lcomm_topk_capacity(40063, 64, 100000), 5007 + 64 + 3 * 1601);
  assert_int_equal(lcomm_topk_capacity(40000, 64, 200), 200);
  assert_int_equal(lcomm_topk_capacity(1000, 64, 100000), 125 + 64 + 3 * 252);
  assert_int_equal(lcomm_topk_capacity(0, 4, 0), 0);
}

/* Wherever they lie. */
static void nothing_waits_with_up_to_eight_owners(void **state) {
  (void)state;
  for (uint32_t outputs = 2; outputs <= 8; outputs++) {
    for (uint64_t total = 0; total < 100000; total = total * 3 + 1) {
      assert_int_equal(lcomm_topk_capacity(total, outputs, 1 << 20), total);
    }
  }
}

/* A view of a tile per owner and more: some own twice as many tiles as others. */
static void parts_have_room_for_what_is_spread_evenly(void **state) {
  (void)state;
  for (uint32_t outputs = 2; outputs <= 100; outputs += 7) {
    for (uint64_t count = (uint64_t)outputs * LCOMM_TILE; count < 4000000;
         count += 5 * LCOMM_TILE) {
      uint64_t total = lcomm_topk_entries(0.01, count);
      uint64_t part = lcomm_stripe_count(count, outputs, 0);
      assert_true(lcomm_topk_capacity(total, outputs, part) >= total * part / count);
    }
  }
}

static void an_unused_density_may_be_anything(void **state) {
  (void)state;
  const uint64_t ends[] = {0, 20};
  const double densities[] = {(double)NAN, 0.25};
  const lcomm_format format = topk_format(0.0, LCOMM_TOPK_INT8);
  lcomm_topk_shape shape = whole(&ends[1], &format);
  shape.segment_ends = ends;
  shape.segment_densities = densities;
  shape.segments = 2;
  lcomm_topk *topk = make(&shape);
  assert_int_equal(lcomm_topk_total(topk), 5);
  lcomm_topk_destroy(topk);
}

static void kept_values_are_counted_in_each_segment(void **state) {
  (void)state;
  const uint64_t ends[] = {100, 102, 1000000};
  const uint64_t kept[] = {1, 3, 50, 99999, 999898, 5000000000u};
  const uint64_t totals[] = {3, 3 + 2 + 3, 50 + 2 + 50, 100 + 2 + 99999, 1000000, 1000000};
  for (int i = 0; i < 6; i++) {
    lcomm_format format = topk_format(0.0, LCOMM_VARIANT_PLAIN);
    format.kept = kept[i];
    lcomm_topk_shape shape = whole(&ends[2], &format);
    shape.segment_ends = ends;
    shape.segments = 3;
    lcomm_topk *topk = make(&shape);
    assert_int_equal(lcomm_topk_total(topk), totals[i]);
    lcomm_topk_destroy(topk);
  }
}

/* The encoder keeps nothing of what made it. */
static void a_shape_is_copied(void **state) {
  (void)state;
  uint64_t ends[] = {100, 1000};
  double densities[] = {0.1, 0.02};
  lcomm_format format = topk_format(0.5, LCOMM_TOPK_INT8);
  lcomm_topk_shape shape = whole(&ends[1], &format);
  shape.segment_ends = ends;
  shape.segment_densities = densities;
  shape.segments = 2;
  lcomm_topk *topk = make(&shape);
  const lcomm_format used = format;
  uint64_t entries = 0, random = 1;
  float *base = sample_memory(1000 * sizeof *base);
  fill(base, 1000, normal, random);
  memset(&format, 0xff, sizeof format);
  memset(ends, 0xff, sizeof ends);
  memset(densities, 0xff, sizeof densities);
  uint8_t *payload = payload_memory(topk);
  size_t size;
  lcomm_topk_encode(topk, lcomm_kernels_best(), base, NULL, NULL, LCOMM_TOPK_HOLD, &payload, &size);
  assert_int_equal(lcomm_topk_check(&used, payload, size, 1000, &entries), LCOMM_OK);
  assert_int_equal(entries, 10 + 18);
  free(base);
  free(payload);
  lcomm_topk_destroy(topk);
}

static void a_kept_value_takes_its_position_and_its_value(void **state) {
  (void)state;
  const lcomm_format plain = topk_format(0.01, LCOMM_VARIANT_PLAIN);
  const lcomm_format int8 = topk_format(0.5, LCOMM_TOPK_INT8);
  assert_true(lcomm_format_bits(&plain) == 8.5 + 16.0);
  assert_true(lcomm_format_bits(&int8) == 8.5 + 8.25);
  assert_true(lcomm_format_is_sparse(&plain) && lcomm_codec_topk.blocks[0] == 0);
  assert_null(lcomm_codec_topk.size);
  assert_null(lcomm_codec_topk.encode);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bad_shapes_are_refused),
    cmocka_unit_test(entries_are_density_times_count_rounded),
    cmocka_unit_test(capacity_is_eight_shares_and_three_deviations),
    cmocka_unit_test(nothing_waits_with_up_to_eight_owners),
    cmocka_unit_test(parts_have_room_for_what_is_spread_evenly),
    cmocka_unit_test(an_unused_density_may_be_anything),
    cmocka_unit_test(kept_values_are_counted_in_each_segment),
    cmocka_unit_test(a_shape_is_copied),
    cmocka_unit_test(a_kept_value_takes_its_position_and_its_value),
};
RUN_TESTS(tests)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What codec_bench says of the accuracy of codecs: figures, entropies, sizes. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/codec_topk_payload.h"
#include "tests/support/unit_tests.h"
#include "tools/codec/codec_entropy.h"
#include "tools/codec/codec_quality.h"
#include "tools/codec/codec_synthetic.h"

enum { N = 20000 };

static void assert_close(double value, double expected) {
  if (!(fabs(value - expected) <= 1e-9 * fmax(fabs(expected), 1.0))) {
    fail_msg("%.17g is not %.17g", value, expected);
  }
}

static lcomm_codec_spec choice_of(const char *text) {
  lcomm_codec_spec choice;
  lcomm_why error;
  if (lcomm_format_parse(text, &choice, &error) != LCOMM_OK) {
    fail_msg("%s", error.text);
  }
  return choice;
}

static lcomm_under_test *make_tested(const char *codec, uint64_t count) {
  lcomm_codec_spec choice = choice_of(codec);
  lcomm_under_test_shape shape = {.choice = &choice, .count = count};
  lcomm_under_test *tested = NULL;
  assert_int_equal(lcomm_under_test_create(&shape, &tested), LCOMM_OK);
  return tested;
}

static void fill(float *values, uint64_t count, lcomm_synthetic_kind kind) {
  lcomm_synthetic synthetic = {.kind = kind, .seed = 3, .count = count};
  lcomm_synthetic_fill(&synthetic, 0, count, 0, count, values);
}

static const char *const codecs[] = {"none",
                                     "none+zstd",
                                     "fp16",
                                     "fp16:scale=block",
                                     "fp16:scale=2^10+zstd",
                                     "bf16+zstd",
                                     "fp8e4m3:block=32,stochastic+ef",
                                     "fp8e5m2+zstd",
                                     "int8+ef+zstd",
                                     "int8:block=32",
                                     "int4",
                                     "int4-ef+zstd",
                                     "int2:block=32",
                                     "int2-ef+zstd",
                                     "sign",
                                     "sign:block=64-ef+zstd",
                                     "topk:0.01",
                                     "topk:0.02+ef+zstd",
                                     "topk:0.01,values=int8+ef+zstd",
                                     "topk:k=100"};
enum { CODECS = sizeof codecs / sizeof *codecs };

/* ---------------------------------------------------------------- figures */

static void figures_are_those_of_the_definitions(void **state) {
  (void)state;
  const float given[] = {3.0f, -4.0f, 0.0f, 2.0f}, arrived[] = {2.0f, -4.0f, 0.5f, 0.0f};
  lcomm_quality q = {0};
  lcomm_quality_compare(&q, given, arrived, 4);
  assert_int_equal(q.count, 4);
  assert_close(lcomm_quality_nmse(&q), (1.0 + 0.25 + 4.0) / 29.0);
  assert_close(lcomm_quality_cosine(&q), 22.0 / (sqrt(29.0) * sqrt(20.25)));
  assert_close(q.error_max, 2.0);
  assert_close(q.given_max, 4.0);
  assert_int_equal(q.not_zero, 3);
  assert_close(lcomm_quality_flushed(&q), 1.0 / 3.0);
}

static void what_is_not_finite_is_counted_and_spoils_no_sum(void **state) {
  (void)state;
  const float given[] = {1.0f, INFINITY, NAN, 2.0f, 3.0f};
  const float arrived[] = {1.0f, 7.0f, NAN, INFINITY, 2.0f};
  lcomm_quality q = {0};
  lcomm_quality_compare(&q, given, arrived, 5);
  assert_int_equal(q.not_finite_in, 2);
  assert_int_equal(q.not_finite_out, 2);
  assert_close(lcomm_quality_nmse(&q), 1.0 / 10.0);
  assert_close(q.error_max, 1.0);
  assert_int_equal(q.flushed, 0);
}

static void a_nan_in_place_of_a_value_is_not_flushed_to_zero(void **state) {
  (void)state;
  const float given[] = {1.0f, -0.0f, 1e-40f}, arrived[] = {NAN, 0.0f, -0.0f};
  lcomm_quality q = {0};
  lcomm_quality_compare(&q, given, arrived, 3);
  assert_int_equal(q.not_zero, 2);
  assert_int_equal(q.flushed, 1);
}

static void nothing_at_all_is_exact(void **state) {
  (void)state;
  const float zeros[3] = {0.0f, 0.0f, 0.0f}, ones[3] = {1.0f, 1.0f, 1.0f};
  lcomm_quality q = {0};
  lcomm_quality_compare(&q, zeros, zeros, 3);
  assert_close(lcomm_quality_nmse(&q), 0.0);
  assert_close(lcomm_quality_cosine(&q), 1.0);
  assert_close(lcomm_quality_flushed(&q), 0.0);
  lcomm_quality_compare(&q, zeros, ones, 3);
  assert_true(isinf(lcomm_quality_nmse(&q)));
  assert_close(lcomm_quality_cosine(&q), 0.0);
}

static void parts_merge_to_the_whole(void **state) {
  (void)state;
  static float given[N], arrived[N];
  fill(given, N, LCOMM_SYNTHETIC_BITS);
  fill(arrived, N, LCOMM_SYNTHETIC_NORMAL);
  for (int i = 0; i < N; i++) {
    arrived[i] = i % 3 == 0 ? given[i] : i % 5 == 1 ? 0.0f : arrived[i];
  }
  given[1] = 3.4e38f; /* the largest error lies in the first part */
  arrived[1] = -3.4e38f;
  lcomm_quality whole = {0}, parts = {0};
  lcomm_quality_compare(&whole, given, arrived, N);
  lcomm_quality_compare(&parts, given, arrived, 777);
  lcomm_quality_compare(&parts, given + 777, arrived + 777, N - 777);
  assert_int_equal(parts.count, whole.count);
  assert_int_equal(parts.flushed, whole.flushed);
  assert_int_equal(parts.not_zero, whole.not_zero);
  assert_int_equal(parts.not_finite_in, whole.not_finite_in);
  assert_int_equal(parts.not_finite_out, whole.not_finite_out);
  assert_true(whole.not_finite_in > 0 && whole.flushed > 0);
  assert_close(parts.error_max / whole.error_max, 1.0);
  assert_close(lcomm_quality_nmse(&parts) / lcomm_quality_nmse(&whole), 1.0);
}

/* -------------------------------------------------------------- entropies */

static void entropy_of_equal_symbols_is_their_logarithm(void **state) {
  (void)state;
  uint64_t counts[256] = {0};
  assert_close(lcomm_entropy_bits(counts), 0.0);
  counts[7] = 1000;
  assert_close(lcomm_entropy_bits(counts), 0.0);
  for (int i = 0; i < 256; i++) {
    counts[i] = 10;
  }
  assert_close(lcomm_entropy_bits(counts), 2560.0 * 8.0);
  memset(counts, 0, sizeof counts);
  counts[0] = 75;
  counts[1] = 25;
  assert_close(lcomm_entropy_bits(counts), -75.0 * log2(0.75) - 25.0 * log2(0.25));
}

static void positions_of_one_in_a_hundred_take_8_bits(void **state) {
  (void)state;
  assert_close(lcomm_entropy_positions(0, 100), 0.0);
  assert_close(lcomm_entropy_positions(100, 100), 0.0);
  double bits = lcomm_entropy_positions(10000, 1000000) / 10000.0;
  assert_true(bits > 8.07 && bits < 8.09);
}

/* Two signs and two exponents: a bit each, if signs and exponents are kept
 * apart, in all codecs. */
static void limits_count_codes_and_scales(void **state) {
  (void)state;
  static float values[1024];
  for (int i = 0; i < 1024; i++) {
    values[i] = (i % 2 == 0 ? 1.0f : -1.0f) * (i / 2 % 2 == 0 ? 1.0f : 2.0f);
  }
  static const char *const names[] = {"none", "bf16",    "fp16",   "fp8e4m3",
                                      "int8", "int4-ef", "topk:1", "topk:1,values=int8"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    lcomm_under_test *tested = make_tested(names[i], 1024);
    lcomm_under_test_encode(tested, lcomm_kernels_best(), values, 1);
    size_t size = lcomm_under_test_sizes_of(tested).payload_bytes;
    double bits = lcomm_entropy_payload(lcomm_under_test_format(tested),
                                        lcomm_under_test_payload(tested), size, 1024);
    if (fabs(bits - 2048.0) > 1e-6) {
      fail_msg("%s: limit %g bits", names[i], bits);
    }
    lcomm_under_test_destroy(tested);
  }
}

static void no_limit_is_above_the_payload(void **state) {
  (void)state;
  static float values[N];
  fill(values, N, LCOMM_SYNTHETIC_BITS);
  for (size_t i = 0; i < CODECS; i++) {
    lcomm_under_test *tested = make_tested(codecs[i], N);
    lcomm_under_test_encode(tested, lcomm_kernels_best(), values, 1);
    size_t size = lcomm_under_test_sizes_of(tested).payload_bytes;
    double bits = lcomm_entropy_payload(lcomm_under_test_format(tested),
                                        lcomm_under_test_payload(tested), size, N);
    if (!(bits >= 0.0 && bits <= 8.0 * (double)size)) {
      fail_msg("%s: limit %g of %zu bytes", codecs[i], bits, size);
    }
    lcomm_under_test_destroy(tested);
  }
}

/* --------------------------------------------------------------- tested */

static void every_codec_arrives_as_close_as_it_should(void **state) {
  (void)state;
  static float values[N], arrived[N];
  fill(values, N, LCOMM_SYNTHETIC_LAPLACE);
  static const double most[CODECS] = {0.0,  0.0,  1e-5, 1e-6, 1e-6, 1e-5, 2e-3, 4e-3, 2e-4, 1e-4,
                                      2e-2, 2e-2, 0.3,  0.3,  0.6,  0.6,  0.99, 0.99, 0.99, 0.999};
  for (size_t i = 0; i < CODECS; i++) {
    lcomm_under_test *tested = make_tested(codecs[i], N);
    lcomm_quality q = {0};
    lcomm_under_test_encode(tested, lcomm_kernels_best(), values, 1);
    assert_int_equal(lcomm_under_test_decode(tested, lcomm_kernels_best(), arrived), LCOMM_OK);
    lcomm_quality_compare(&q, values, arrived, N);
    lcomm_quality_weigh(&q, tested);
    if (!(lcomm_quality_nmse(&q) <= most[i]) || q.not_finite_out != 0) {
      fail_msg("%s: NMSE %g", codecs[i], lcomm_quality_nmse(&q));
    }
    if (lcomm_quality_ratio(&q) < 1.0 && i > 1) {
      fail_msg("%s: ratio %g", codecs[i], lcomm_quality_ratio(&q));
    }
    lcomm_under_test_destroy(tested);
  }
}

static void add_is_decode_and_add(void **state) {
  (void)state;
  static float values[N], once[N], twice[N];
  fill(values, N, LCOMM_SYNTHETIC_NORMAL);
  for (size_t i = 0; i < CODECS; i++) {
    lcomm_under_test *tested = make_tested(codecs[i], N);
    lcomm_under_test_encode(tested, lcomm_kernels_best(), values, 1);
    lcomm_under_test_decode(tested, lcomm_kernels_best(), once);
    lcomm_under_test_decode(tested, lcomm_kernels_best(), twice);
    assert_int_equal(lcomm_under_test_add(tested, lcomm_kernels_best(), twice), LCOMM_OK);
    for (int v = 0; v < N; v++) {
      if (twice[v] < 2.0f * once[v] || twice[v] > 2.0f * once[v]) {
        fail_msg("%s: %g added to itself is %g", codecs[i], (double)once[v], (double)twice[v]);
      }
    }
    lcomm_under_test_destroy(tested);
  }
}

/* With error feedback the second step sends what the first one kept back. */
static void reset_forgets_what_was_not_sent(void **state) {
  (void)state;
  static float values[N], first[N], second[N], third[N];
  fill(values, N, LCOMM_SYNTHETIC_NORMAL);
  static const char *const with_feedback[] = {"int8+ef", "topk:0.01+ef", "int4", "int2", "sign"};
  for (size_t i = 0; i < 5; i++) {
    lcomm_under_test *tested = make_tested(with_feedback[i], N);
    lcomm_under_test_encode(tested, lcomm_kernels_best(), values, 1);
    lcomm_under_test_decode(tested, lcomm_kernels_best(), first);
    lcomm_under_test_encode(tested, lcomm_kernels_best(), values, 1);
    lcomm_under_test_decode(tested, lcomm_kernels_best(), second);
    lcomm_under_test_reset(tested);
    lcomm_under_test_encode(tested, lcomm_kernels_best(), values, 1);
    lcomm_under_test_decode(tested, lcomm_kernels_best(), third);
    assert_memory_not_equal(first, second, sizeof first);
    assert_memory_equal(first, third, sizeof first);
    lcomm_under_test_destroy(tested);
  }
}

static void sizes_of_a_sparse_payload_add_up(void **state) {
  (void)state;
  static float values[N];
  fill(values, N, LCOMM_SYNTHETIC_NORMAL);
  lcomm_under_test *plain = make_tested("topk:0.01", N), *coded = make_tested("topk:0.01+zstd", N);
  lcomm_under_test_encode(plain, lcomm_kernels_best(), values, 1);
  lcomm_under_test_encode(coded, lcomm_kernels_best(), values, 1);
  lcomm_under_test_sizes a = lcomm_under_test_sizes_of(plain), b = lcomm_under_test_sizes_of(coded);
  assert_int_equal(a.entries, 200);
  assert_int_equal(a.payload_bytes, 4 + a.index_bytes + 2 * 200);
  assert_int_equal(a.sent_bytes, a.payload_bytes);
  assert_int_equal(a.sent_index_bytes, a.index_bytes);
  assert_int_equal(b.payload_bytes, a.payload_bytes);
  assert_int_equal(b.index_bytes, a.index_bytes);
  /* deltas of 7 bits as LEB128, most of them one byte: coded or as they are */
  assert_true(b.sent_index_bytes > 100 && b.sent_index_bytes < 400);
  assert_true(b.sent_bytes > b.sent_index_bytes + 8);
  lcomm_under_test_destroy(plain);
  lcomm_under_test_destroy(coded);
}

/* Distances of 128 to 511 in no order take 8.6 bits each at least. */
static void all_of_the_coded_positions_are_counted(void **state) {
  (void)state;
  enum { KEPT = 400, COUNT = KEPT * 512 };
  float *values = calloc(COUNT, sizeof *values);
  assert_non_null(values);
  uint32_t seed = 7, position = 0;
  for (int i = 0; i < KEPT; i++) {
    seed = seed * 1664525u + 1013904223u;
    position += 128 + (seed >> 12) % 384;
    values[position] = 1.0f;
  }
  lcomm_under_test *tested = make_tested("topk:k=400+zstd", COUNT);
  lcomm_under_test_encode(tested, lcomm_kernels_best(), values, 1);
  size_t bytes = lcomm_under_test_sizes_of(tested).sent_index_bytes;
  assert_true(bytes > KEPT * 86 / 80 && bytes <= 2 * KEPT + 4);
  lcomm_under_test_destroy(tested);
  free(values);
}

static void top_k_keeps_its_share_of_every_segment(void **state) {
  (void)state;
  static float values[N], arrived[N];
  for (int i = 0; i < N; i++) {
    values[i] = (float)(i + 1) * (i < N / 2 ? 1e-6f : 1.0f);
  }
  lcomm_codec_spec choice = choice_of("topk:0.01");
  const uint64_t ends[] = {N / 2, N};
  lcomm_under_test_shape shape = {
      .choice = &choice, .count = N, .segment_ends = ends, .segments = 2};
  lcomm_under_test *tested = NULL;
  assert_int_equal(lcomm_under_test_create(&shape, &tested), LCOMM_OK);
  lcomm_under_test_encode(tested, lcomm_kernels_best(), values, 1);
  lcomm_under_test_decode(tested, lcomm_kernels_best(), arrived);
  int kept[2] = {0, 0};
  for (int i = 0; i < N; i++) {
    kept[i / (N / 2)] += arrived[i] > 0.0f;
  }
  assert_int_equal(kept[0], 100);
  assert_int_equal(kept[1], 100);
  lcomm_under_test_destroy(tested);
}

static void a_codec_that_cannot_take_so_many_values_says_so(void **state) {
  (void)state;
  lcomm_codec_spec choice = choice_of("topk:0.01");
  lcomm_under_test *tested = NULL;
  lcomm_under_test_shape none = {.choice = &choice, .count = 0};
  assert_int_equal(lcomm_under_test_create(&none, &tested), LCOMM_ERR_ARGUMENT);
  assert_null(tested);
  lcomm_under_test_shape many = {.choice = &choice, .count = (uint64_t)1 << 32};
  assert_int_equal(lcomm_under_test_create(&many, &tested), LCOMM_ERR_ARGUMENT);
  assert_null(tested);
  lcomm_under_test_destroy(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(figures_are_those_of_the_definitions),
    cmocka_unit_test(what_is_not_finite_is_counted_and_spoils_no_sum),
    cmocka_unit_test(a_nan_in_place_of_a_value_is_not_flushed_to_zero),
    cmocka_unit_test(nothing_at_all_is_exact),
    cmocka_unit_test(parts_merge_to_the_whole),
    cmocka_unit_test(entropy_of_equal_symbols_is_their_logarithm),
    cmocka_unit_test(positions_of_one_in_a_hundred_take_8_bits),
    cmocka_unit_test(limits_count_codes_and_scales),
    cmocka_unit_test(no_limit_is_above_the_payload),
    cmocka_unit_test(every_codec_arrives_as_close_as_it_should),
    cmocka_unit_test(add_is_decode_and_add),
    cmocka_unit_test(reset_forgets_what_was_not_sent),
    cmocka_unit_test(sizes_of_a_sparse_payload_add_up),
    cmocka_unit_test(all_of_the_coded_positions_are_counted),
    cmocka_unit_test(top_k_keeps_its_share_of_every_segment),
    cmocka_unit_test(a_codec_that_cannot_take_so_many_values_says_so),
};
RUN_TESTS(tests)

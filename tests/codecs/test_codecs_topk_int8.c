/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Top-k with values in int8: how far they are off, and what Inf and NaN do to
 * their block. */

#include "tests/codecs/topk_reference.h"
#include "tests/codecs/topk_samples.h"
#include "tests/support/unit_tests.h"

enum { N = 300 }; /* two whole blocks and a short one, when all are kept */

static const uint64_t count_n = N;

/* Sends all of `value`, with what stays. */
static void send_all(const float value[N], float sent[N], float left[N]) {
  const lcomm_format format = topk_format(1.0, LCOMM_TOPK_INT8);
  lcomm_topk_shape shape = whole(&count_n, &format);
  lcomm_topk *topk = make(&shape);
  uint8_t *payload = payload_memory(topk);
  size_t size;
  memset(left, 0, N * sizeof *left);
  lcomm_topk_encode(topk, lcomm_kernels_best(), value, left, left, LCOMM_TOPK_RELEASE, &payload,
                    &size);
  assert_int_equal(lcomm_topk_check(&format, payload, size, N, NULL), LCOMM_OK);
  lcomm_topk_decode(&format, payload, N, 1, 0, 1.0f, sent);
  free(payload);
  lcomm_topk_destroy(topk);
}

static float largest_of_block(const float *value, size_t i) {
  float largest = 0.0f;
  for (size_t j = i / LCOMM_BLOCK * LCOMM_BLOCK; j < N && j / LCOMM_BLOCK == i / LCOMM_BLOCK; j++) {
    largest = fmaxf(largest, fabsf(value[j]));
  }
  return largest;
}

static void an_error_is_half_a_step_of_its_block_at_most(void **state) {
  (void)state;
  float value[N], sent[N], left[N];
  for (uint64_t round = 1; round <= 50; round++) {
    fill(value, N, round % 2 == 0 ? normal : few_levels, round);
    for (size_t i = 0; i < N; i++) {
      value[i] *= ldexpf(1.0f, (int)(round * 4) - 110 + (int)(i / LCOMM_BLOCK));
    }
    send_all(value, sent, left);
    for (size_t i = 0; i < N; i++) {
      double step = (double)largest_of_block(value, i) / 127.0;
      assert_true(fabs((double)value[i] - (double)sent[i]) <= step * 0.5001);
      assert_true(left[i] == value[i] - sent[i]);
    }
  }
}

static void the_largest_of_a_block_is_sent_nearly_exactly(void **state) {
  (void)state;
  float value[N], sent[N], left[N];
  fill(value, N, normal, 9);
  send_all(value, sent, left);
  for (size_t i = 0; i < N; i++) {
    if (fabsf(value[i]) >= largest_of_block(value, i)) {
      assert_true(fabsf(left[i]) <= fabsf(value[i]) * 2.4e-7f);
    }
  }
}

static void a_tiny_block_is_sent_as_zeros_and_kept(void **state) {
  (void)state;
  float value[N], sent[N], left[N];
  fill(value, N, normal, 10);
  for (size_t i = 0; i < N; i++) {
    value[i] *= ldexpf(1.0f, i < LCOMM_BLOCK ? -130 : 0);
  }
  send_all(value, sent, left);
  for (size_t i = 0; i < LCOMM_BLOCK; i++) {
    assert_true(sent[i] == 0.0f);
    assert_same_float(left[i], value[i]);
  }
  assert_true(sent[LCOMM_BLOCK] != 0.0f);
}

/* The peers learn of it; finite values of the block wait for the next step,
 * those of other blocks do not notice. */
static void a_value_that_is_not_finite_spoils_its_block_only(void **state) {
  (void)state;
  const float bad[] = {SAMPLE_NAN, SAMPLE_INFINITY, -SAMPLE_INFINITY};
  float value[N], sent[N], left[N];
  for (int round = 0; round < 3; round++) {
    size_t place = LCOMM_BLOCK + 17;
    fill(value, N, normal, 11);
    value[place] = bad[round];
    send_all(value, sent, left);
    for (size_t i = 0; i < N; i++) {
      bool spoiled = i / LCOMM_BLOCK == place / LCOMM_BLOCK;
      assert_true(spoiled == !isfinite(sent[i]));
      assert_true(left[i] == (i == place ? 0.0f : spoiled ? value[i] : value[i] - sent[i]));
    }
    assert_true(isnan(bad[round]) ? (bool)isnan(sent[place]) : sent[place] == bad[round]);
  }
}

/* 127 * (amax / 127) can round past the largest float: such a value arrives as Inf, and nothing of
 * it stays, as it would in the next step, too. */
static void the_largest_float_leaves_its_error_or_nothing(void **state) {
  (void)state;
  float value[N], sent[N], left[N];
  fill(value, N, normal, 12);
  value[3] = 3.4028235e38f;
  send_all(value, sent, left);
  assert_true(left[3] == (isfinite(sent[3]) ? value[3] - sent[3] : 0.0f));
  for (size_t i = 0; i < N; i++) {
    assert_true(isfinite(left[i]));
  }
}

/* Scales follow the order of entries, not of elements. */
static void blocks_are_of_kept_entries(void **state) {
  (void)state;
  enum { MANY = 20000, EVERY = 50 };
  const uint64_t count = MANY;
  const lcomm_format format = topk_format(1.0 / EVERY, LCOMM_TOPK_INT8);
  lcomm_topk_shape shape = whole(&count, &format);
  lcomm_topk *topk = make(&shape);
  uint8_t *payload = payload_memory(topk);
  size_t size;
  float *base = sample_memory(MANY * sizeof *base), *sent = sample_memory(MANY * sizeof *sent);
  for (size_t i = 0; i < MANY; i += EVERY) { /* a step of 1, 2, 4, 8 */
    base[i] = ldexpf(i / EVERY % LCOMM_BLOCK == 0 ? 127.0f : 5.0f, (int)(i / EVERY / LCOMM_BLOCK));
  }
  lcomm_topk_encode(topk, lcomm_kernels_best(), base, NULL, NULL, LCOMM_TOPK_HOLD, &payload, &size);
  lcomm_topk_decode(&format, payload, MANY, 1, 0, 1.0f, sent);
  assert_memory_equal(sent, base, MANY * sizeof *base);
  free(base);
  free(sent);
  free(payload);
  lcomm_topk_destroy(topk);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_error_is_half_a_step_of_its_block_at_most),
    cmocka_unit_test(the_largest_of_a_block_is_sent_nearly_exactly),
    cmocka_unit_test(a_tiny_block_is_sent_as_zeros_and_kept),
    cmocka_unit_test(a_value_that_is_not_finite_spoils_its_block_only),
    cmocka_unit_test(the_largest_float_leaves_its_error_or_nothing),
    cmocka_unit_test(blocks_are_of_kept_entries),
};
RUN_TESTS(tests)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Error feedback of the dense codecs: nothing is lost, nothing is poisoned. */

#include "tests/kernels/kernel_samples.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "codecs/codec_residual.h"
#include "tests/codecs/formats.h"
#include "tests/support/unit_tests.h"

enum { N = 5000 }; /* more than one chunk, a short last block */

enum { SEED = 9 };
static const lcomm_range all = {N, 0, N};

/* All formats but the exact one, which is the first of the list. */
static lcomm_format lossy[FORMATS_MAX];
static size_t lossy_count;

static int list_formats(void **state) {
  (void)state;
  lcomm_format list[FORMATS_MAX];
  size_t count = dense_formats(list);
  lossy_count = count - 1;
  memcpy(lossy, list + 1, lossy_count * sizeof *lossy);
  return list[0].codec == &lcomm_codec_none ? 0 : 1;
}

static const lcomm_kernels *kernels(void) {
  return lcomm_kernels_best();
}

static void fill_normal(float *value, size_t n, uint64_t seed) {
  for (size_t i = 0; i < n; i++) {
    value[i] = sample_normal(&seed);
  }
}

static void decode(const lcomm_format *format, const uint8_t *payload, float *value) {
  lcomm_decode(format, kernels(), payload, all, 1.0f, value);
}

static void sent_and_residual_make_up_what_came_in(const lcomm_format *format) {
  static float source[N], residual[N], decoded[N];
  static double given[N], applied[N];
  uint8_t *payload = sample_memory(lcomm_payload_size(format, N));
  memset(residual, 0, sizeof residual);
  memset(given, 0, sizeof given);
  memset(applied, 0, sizeof applied);
  for (uint64_t step = 1; step <= 50; step++) {
    fill_normal(source, N, step);
    lcomm_residual_encode(format, kernels(), source, residual, residual, all, SEED, payload);
    decode(format, payload, decoded);
    for (int i = 0; i < N; i++) {
      given[i] += (double)source[i];
      applied[i] += (double)decoded[i];
    }
  }
  for (int i = 0; i < N; i++) {
    assert_true(fabs(given[i] - applied[i] - (double)residual[i]) <= 1e-4);
  }
  free(payload);
}

static void payload_is_the_codec_applied_to_the_accumulated_values(const lcomm_format *format) {
  static float source[N], residual[N], acc[N], decoded[N];
  uint8_t *payload = sample_memory(lcomm_payload_size(format, N)),
          *plain = sample_memory(lcomm_payload_size(format, N));
  fill_normal(source, N, 1);
  fill_normal(residual, N, 2);
  for (int i = 0; i < N; i++) {
    acc[i] = source[i] + residual[i];
  }
  lcomm_encode(format, kernels(), acc, all, SEED, plain);
  lcomm_residual_encode(format, kernels(), source, residual, residual, all, SEED, payload);
  assert_memory_equal(payload, plain, lcomm_payload_size(format, N));
  decode(format, payload, decoded);
  for (int i = 0; i < N; i++) {
    assert_true(residual[i] == acc[i] - decoded[i]);
  }
  free(payload);
  free(plain);
}

static void ranges_give_the_same_as_the_whole(const lcomm_format *format) {
  static float source[N], whole[N], pieces[N];
  size_t size = lcomm_payload_size(format, N);
  uint8_t *payload = sample_memory(size), *ranged = sample_memory(size);
  fill_normal(source, N, 1);
  fill_normal(whole, N, 2);
  memcpy(pieces, whole, sizeof whole);
  lcomm_residual_encode(format, kernels(), source, whole, whole, all, SEED, payload);
  uint64_t middle = 7 * LCOMM_BLOCK;
  lcomm_residual_encode(format, kernels(), source + middle, pieces + middle, pieces + middle,
                        (lcomm_range){N, middle, N - middle}, SEED, ranged);
  lcomm_residual_encode(format, kernels(), source, pieces, pieces, (lcomm_range){N, 0, middle},
                        SEED, ranged);
  assert_memory_equal(payload, ranged, size);
  assert_memory_equal(whole, pieces, sizeof whole);
  free(payload);
  free(ranged);
}

static void nan_and_inf_do_not_poison_the_residual(const lcomm_format *format) {
  static float source[N], residual[N], before[N], decoded[N];
  uint8_t *payload = sample_memory(lcomm_payload_size(format, N));
  fill_normal(source, N, 1);
  fill_normal(residual, N, 2);
  memcpy(before, residual, sizeof before);
  source[10] = SAMPLE_NAN;
  source[200] = SAMPLE_INFINITY;
  source[4999] = -SAMPLE_INFINITY;
  lcomm_residual_encode(format, kernels(), source, residual, residual, all, SEED, payload);
  decode(format, payload, decoded);
  for (int i = 0; i < N; i++) {
    float acc = source[i] + before[i];
    assert_true(isfinite(residual[i]));
    if (!isfinite(acc)) {
      assert_true(residual[i] == 0.0f && !isfinite(decoded[i]));
    } else if (isnan(decoded[i])) {
      assert_true(residual[i] == acc);
    } else if (isinf(decoded[i])) {
      assert_true(residual[i] == 0.0f);
    } else {
      assert_true(residual[i] == acc - decoded[i]);
    }
  }
  free(payload);
}

/* One value beyond the range of every format that can overflow, then steps with nothing in them. */
static void what_overflows_once_is_not_sent_again(const lcomm_format *format) {
  static float source[N], residual[N], decoded[N];
  uint8_t *payload = sample_memory(lcomm_payload_size(format, N));
  memset(source, 0, sizeof source);
  memset(residual, 0, sizeof residual);
  source[N - 1] = FLT_MAX;
  for (int step = 0; step < 3; step++) {
    lcomm_residual_encode(format, kernels(), source, residual, residual, all, SEED, payload);
    decode(format, payload, decoded);
    assert_true(step == 0 || isfinite(decoded[N - 1]));
    assert_true(isfinite(residual[N - 1]));
    source[N - 1] = 0;
  }
  free(payload);
}

static void owner_keeps_the_weighted_error(const lcomm_format *format) {
  static float source[N], residual[N], before[N], decoded[N];
  uint8_t *payload = sample_memory(lcomm_payload_size(format, N)),
          *plain = sample_memory(lcomm_payload_size(format, N));
  fill_normal(source, N, 1);
  fill_normal(residual, N, 2);
  memcpy(before, residual, sizeof before);
  lcomm_encode(format, kernels(), source, all, SEED, plain);
  lcomm_residual_encode_owner(format, kernels(), source, residual, 4.0f, all, SEED, payload);
  assert_memory_equal(payload, plain, lcomm_payload_size(format, N));
  decode(format, payload, decoded);
  for (int i = 0; i < N; i++) {
    assert_true(residual[i] == before[i] + 4.0f * (source[i] - decoded[i]));
  }
  free(payload);
  free(plain);
}

static void owner_is_not_poisoned_either(const lcomm_format *format) {
  static float source[N], residual[N], before[N];
  uint8_t *payload = sample_memory(lcomm_payload_size(format, N));
  fill_normal(source, N, 1);
  fill_normal(residual, N, 2);
  memcpy(before, residual, sizeof before);
  source[0] = SAMPLE_NAN;
  source[300] = SAMPLE_INFINITY;
  residual[600] = SAMPLE_NAN;
  lcomm_residual_encode_owner(format, kernels(), source, residual, 2.0f, all, SEED, payload);
  for (int i = 0; i < N; i++) {
    assert_true(isfinite(residual[i]));
  }
  assert_true(residual[0] == before[0]);
  assert_true(residual[300] == before[300]);
  assert_true(residual[600] == 0.0f);
  free(payload);
}

static void fold_hands_the_residual_over(void **state) {
  (void)state;
  static float value[N], residual[N], expected[N];
  const float nothing[N] = {0};
  fill_normal(value, N, 1);
  fill_normal(residual, N, 2);
  for (int i = 0; i < N; i++) {
    expected[i] = value[i] + residual[i];
  }
  lcomm_residual_fold(kernels(), value, residual, residual, N);
  assert_memory_equal(value, expected, sizeof expected);
  assert_memory_equal(residual, nothing, sizeof nothing);
}

static void no_elements_are_no_problem(void **state) {
  (void)state;
  uint64_t payload;
  float value = 0.0f;
  for (size_t c = 0; c < lossy_count; c++) {
    lcomm_range none = {0, 0, 0};
    lcomm_residual_encode(&lossy[c], kernels(), &value, &value, &value, none, SEED,
                          (uint8_t *)&payload);
    lcomm_residual_encode_owner(&lossy[c], kernels(), &value, &value, 1.0f, none, SEED,
                                (uint8_t *)&payload);
  }
  lcomm_residual_fold(kernels(), &value, &value, &value, 0);
}

static void test_each_lossy_format(void **state) {
  const format_property *property = *state;
  for (size_t i = 0; i < lossy_count; i++) {
    property->holds(&lossy[i]);
  }
}

static const struct CMUnitTest tests[] = {
    FORMAT_TEST(test_each_lossy_format, sent_and_residual_make_up_what_came_in),
    FORMAT_TEST(test_each_lossy_format, payload_is_the_codec_applied_to_the_accumulated_values),
    FORMAT_TEST(test_each_lossy_format, ranges_give_the_same_as_the_whole),
    FORMAT_TEST(test_each_lossy_format, nan_and_inf_do_not_poison_the_residual),
    FORMAT_TEST(test_each_lossy_format, what_overflows_once_is_not_sent_again),
    FORMAT_TEST(test_each_lossy_format, owner_keeps_the_weighted_error),
    FORMAT_TEST(test_each_lossy_format, owner_is_not_poisoned_either),
    cmocka_unit_test(fold_hands_the_residual_over),
    cmocka_unit_test(no_elements_are_no_problem),
};
RUN_TESTS_WITHIN(tests, list_formats, NULL)

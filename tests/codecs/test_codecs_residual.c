/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Error feedback of the dense codecs: nothing is lost, nothing is poisoned. */

#include "tests/kernels/samples.h"

#include <math.h>
#include <stdbool.h>

#include "codecs/residual.h"

enum { N = 5000 }; /* more than one chunk, a short last block */

static const lcomm_codec *const lossy[] = {&lcomm_codec_bf16, &lcomm_codec_fp16, &lcomm_codec_int8,
                                           &lcomm_codec_fp8e4m3, &lcomm_codec_fp8e5m2};
enum { LOSSY = sizeof lossy / sizeof *lossy };

static const lcomm_kernels *kernels(void) {
  return lcomm_kernels_best();
}

static void fill_normal(float *value, size_t n, uint64_t seed) {
  for (size_t i = 0; i < n; i++)
    value[i] = sample_normal(&seed);
}

static void decode(const lcomm_codec *codec, const uint8_t *payload, float *value) {
  codec->decode(kernels(), payload, N, 0, N, 1.0f, value);
}

static void sent_and_residual_make_up_what_came_in(void **state) {
  (void)state;
  static float source[N], residual[N], decoded[N];
  static double given[N], applied[N];
  for (int c = 0; c < LOSSY; c++) {
    uint8_t *payload = sample_memory(lossy[c]->size(N));
    memset(residual, 0, sizeof residual);
    memset(given, 0, sizeof given);
    memset(applied, 0, sizeof applied);
    for (uint64_t step = 1; step <= 50; step++) {
      fill_normal(source, N, step);
      lcomm_residual_encode(lossy[c], kernels(), source, residual, N, 0, N, payload);
      decode(lossy[c], payload, decoded);
      for (int i = 0; i < N; i++) {
        given[i] += (double)source[i];
        applied[i] += (double)decoded[i];
      }
    }
    for (int i = 0; i < N; i++)
      assert_true(fabs(given[i] - applied[i] - (double)residual[i]) <= 1e-4);
    free(payload);
  }
}

static void payload_is_the_codec_applied_to_the_accumulated_values(void **state) {
  (void)state;
  static float source[N], residual[N], acc[N], decoded[N];
  for (int c = 0; c < LOSSY; c++) {
    uint8_t *payload = sample_memory(lossy[c]->size(N)), *plain = sample_memory(lossy[c]->size(N));
    fill_normal(source, N, 1);
    fill_normal(residual, N, 2);
    for (int i = 0; i < N; i++)
      acc[i] = source[i] + residual[i];
    lossy[c]->encode(kernels(), acc, N, 0, N, plain);
    lcomm_residual_encode(lossy[c], kernels(), source, residual, N, 0, N, payload);
    assert_memory_equal(payload, plain, lossy[c]->size(N));
    decode(lossy[c], payload, decoded);
    for (int i = 0; i < N; i++)
      assert_true(residual[i] == acc[i] - decoded[i]);
    free(payload);
    free(plain);
  }
}

static void ranges_give_the_same_as_the_whole(void **state) {
  (void)state;
  static float source[N], whole[N], pieces[N];
  for (int c = 0; c < LOSSY; c++) {
    size_t size = lossy[c]->size(N);
    uint8_t *payload = sample_memory(size), *ranged = sample_memory(size);
    fill_normal(source, N, 1);
    fill_normal(whole, N, 2);
    memcpy(pieces, whole, sizeof whole);
    lcomm_residual_encode(lossy[c], kernels(), source, whole, N, 0, N, payload);
    uint64_t middle = 7 * LCOMM_BLOCK;
    lcomm_residual_encode(lossy[c], kernels(), source + middle, pieces + middle, N, middle,
                          N - middle, ranged);
    lcomm_residual_encode(lossy[c], kernels(), source, pieces, N, 0, middle, ranged);
    assert_memory_equal(payload, ranged, size);
    assert_memory_equal(whole, pieces, sizeof whole);
    free(payload);
    free(ranged);
  }
}

static void nan_and_inf_do_not_poison_the_residual(void **state) {
  (void)state;
  static float source[N], residual[N], before[N], decoded[N];
  for (int c = 0; c < LOSSY; c++) {
    uint8_t *payload = sample_memory(lossy[c]->size(N));
    fill_normal(source, N, 1);
    fill_normal(residual, N, 2);
    memcpy(before, residual, sizeof before);
    source[10] = SAMPLE_NAN;
    source[200] = SAMPLE_INFINITY;
    source[4999] = -SAMPLE_INFINITY;
    lcomm_residual_encode(lossy[c], kernels(), source, residual, N, 0, N, payload);
    decode(lossy[c], payload, decoded);
    for (int i = 0; i < N; i++) {
      float acc = source[i] + before[i];
      assert_true(isfinite(residual[i]));
      if (!isfinite(acc))
        assert_true(residual[i] == 0.0f && !isfinite(decoded[i]));
      else if (!isfinite(decoded[i]))
        assert_true(residual[i] == acc);
      else
        assert_true(residual[i] == acc - decoded[i]);
    }
    free(payload);
  }
}

static void owner_keeps_the_weighted_error(void **state) {
  (void)state;
  static float source[N], residual[N], before[N], decoded[N];
  for (int c = 0; c < LOSSY; c++) {
    uint8_t *payload = sample_memory(lossy[c]->size(N)), *plain = sample_memory(lossy[c]->size(N));
    fill_normal(source, N, 1);
    fill_normal(residual, N, 2);
    memcpy(before, residual, sizeof before);
    lossy[c]->encode(kernels(), source, N, 0, N, plain);
    lcomm_residual_encode_owner(lossy[c], kernels(), source, residual, 4.0f, N, 0, N, payload);
    assert_memory_equal(payload, plain, lossy[c]->size(N));
    decode(lossy[c], payload, decoded);
    for (int i = 0; i < N; i++)
      assert_true(residual[i] == before[i] + 4.0f * (source[i] - decoded[i]));
    free(payload);
    free(plain);
  }
}

static void owner_is_not_poisoned_either(void **state) {
  (void)state;
  static float source[N], residual[N], before[N];
  for (int c = 0; c < LOSSY; c++) {
    uint8_t *payload = sample_memory(lossy[c]->size(N));
    fill_normal(source, N, 1);
    fill_normal(residual, N, 2);
    memcpy(before, residual, sizeof before);
    source[0] = SAMPLE_NAN;
    source[300] = SAMPLE_INFINITY;
    residual[600] = SAMPLE_NAN;
    lcomm_residual_encode_owner(lossy[c], kernels(), source, residual, 2.0f, N, 0, N, payload);
    for (int i = 0; i < N; i++)
      assert_true(isfinite(residual[i]));
    assert_true(residual[0] == before[0]);
    assert_true(residual[300] == before[300]);
    assert_true(residual[600] == 0.0f);
    free(payload);
  }
}

static void fold_hands_the_residual_over(void **state) {
  (void)state;
  static float value[N], residual[N], expected[N];
  const float nothing[N] = {0};
  fill_normal(value, N, 1);
  fill_normal(residual, N, 2);
  for (int i = 0; i < N; i++)
    expected[i] = value[i] + residual[i];
  lcomm_residual_fold(value, residual, N);
  assert_memory_equal(value, expected, sizeof expected);
  assert_memory_equal(residual, nothing, sizeof nothing);
}

static void no_elements_are_no_problem(void **state) {
  (void)state;
  uint64_t payload;
  for (int c = 0; c < LOSSY; c++) {
    lcomm_residual_encode(lossy[c], kernels(), NULL, NULL, 0, 0, 0, (uint8_t *)&payload);
    lcomm_residual_encode_owner(lossy[c], kernels(), NULL, NULL, 1.0f, 0, 0, 0,
                                (uint8_t *)&payload);
  }
  lcomm_residual_fold(NULL, NULL, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sent_and_residual_make_up_what_came_in),
      cmocka_unit_test(payload_is_the_codec_applied_to_the_accumulated_values),
      cmocka_unit_test(ranges_give_the_same_as_the_whole),
      cmocka_unit_test(nan_and_inf_do_not_poison_the_residual),
      cmocka_unit_test(owner_keeps_the_weighted_error),
      cmocka_unit_test(owner_is_not_poisoned_either),
      cmocka_unit_test(fold_hands_the_residual_over),
      cmocka_unit_test(no_elements_are_no_problem),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

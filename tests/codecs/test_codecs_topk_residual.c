/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Top-k: what stays in the residual and in the momentum. */

#include "tests/codecs/topk_reference.h"
#include "tests/codecs/topk_samples.h"
#include "tests/support/unit_tests.h"

enum { N = 30000 };

static const uint64_t count_n = N;

/* Memory that tests share; every test clears what it uses. */
static float base[N], residual[N], before[N], sent[N], other[N];

static void clear(void) {
  memset(base, 0, sizeof base);
  memset(residual, 0, sizeof residual);
  memset(sent, 0, sizeof sent);
}

static size_t encode_into(lcomm_topk *topk, const float *from, float *to, lcomm_topk_keep keep,
                          uint8_t *payload) {
  size_t size;
  lcomm_topk_encode(topk, lcomm_kernels_best(), from, to, to, keep, &payload, &size);
  return size;
}

static void encode(const topk_encoder *e, const float *from, float *to, lcomm_topk_keep keep) {
  (void)encode_into(e->topk, from, to, keep, e->payload);
}

/* Step by step, to the last bit: a bf16 error is exact, an int8 error is
 * rounded once at most. */
static void sent_and_residual_make_up_what_came_in(void **state) {
  (void)state;
  for (int variant = 0; variant < VARIANTS; variant++) {
    topk_encoder e = whole_encoder(&count_n, 0.02, variant);
    clear();
    for (uint64_t step = 1; step <= 30; step++) {
      fill(base, N, step % 3 == 0 ? clustered : normal, step);
      memcpy(before, residual, sizeof before);
      encode(&e, base, residual, LCOMM_TOPK_RELEASE);
      lcomm_topk_decode(&e.format, e.payload, N, 1, 0, 1.0f, sent);
      for (size_t i = 0; i < N; i++) {
        double acc = (double)(base[i] + before[i]);
        assert_true(residual[i] == (float)(acc - (double)sent[i]));
        assert_true(variant != 0 || (double)residual[i] + (double)sent[i] == acc);
      }
    }
    free_encoder(&e);
  }
}

/* So nothing is lost over many steps either, but for rounding. */
static void steps_add_up_to_the_sum_of_gradients(void **state) {
  (void)state;
  static double given[N], applied[N];
  for (int variant = 0; variant < VARIANTS; variant++) {
    topk_encoder e = whole_encoder(&count_n, 0.02, variant);
    clear();
    memset(given, 0, sizeof given);
    memset(applied, 0, sizeof applied);
    for (uint64_t step = 1; step <= 40; step++) {
      fill(base, N, normal, step);
      encode(&e, base, residual, LCOMM_TOPK_RELEASE);
      lcomm_topk_decode(&e.format, e.payload, N, 1, 0, 1.0f, sent);
      for (size_t i = 0; i < N; i++) {
        given[i] += (double)base[i];
        applied[i] += (double)sent[i];
      }
    }
    for (size_t i = 0; i < N; i++) {
      assert_true(fabs(given[i] - applied[i] - (double)residual[i]) <= 1e-4);
    }
    free_encoder(&e);
  }
}

static void settling_a_held_payload_is_releasing_it(void **state) {
  (void)state;
  value_of *const hard[] = {normal, rarely_not_finite, any_bits, mostly_zero};
  for (uint32_t i = 0; i < 2 * VARIANTS * 4; i++) {
    topk_encoder e = part_encoder(&count_n, 0.03, (int)(i / 2 % VARIANTS), 2, i % 2);
    fill(base, N, hard[i / 4], 5);
    fill(residual, N, normal, 6);
    memcpy(before, residual, sizeof before);
    encode(&e, base, residual, LCOMM_TOPK_RELEASE);
    encode(&e, base, before, LCOMM_TOPK_HOLD);
    lcomm_topk_commit(&e.format, e.payload, NULL, 2, i % 2, before);
    for (size_t j = 0; j < N; j++) {
      assert_same_float(before[j], residual[j]);
    }
    free_encoder(&e);
  }
}

static bool *entries_of(const lcomm_format *format, const uint8_t *payload) {
  bool *is_entry = sample_memory(N * sizeof *is_entry);
  float *mark = sample_memory(N * sizeof *mark);
  for (size_t i = 0; i < N; i++) {
    mark[i] = 1.0f;
  }
  lcomm_topk_mask(format, payload, NULL, 1, 0, mark);
  for (size_t i = 0; i < N; i++) {
    is_entry[i] = mark[i] == 0.0f;
  }
  free(mark);
  return is_entry;
}

/* Payloads of two arrays that agree on about half of their entries, and which those are. */
typedef struct payload_pair {
  lcomm_format format;
  uint8_t *mine, *theirs;
  bool *here, *there;
} payload_pair;

/* The residual of the first is held. */
static payload_pair make_pair(int variant) {
  payload_pair p = {.format = topk_format(0.05, variant)};
  lcomm_topk_shape shape = whole(&count_n, &p.format);
  lcomm_topk *topk = make(&shape);
  p.mine = payload_memory(topk);
  p.theirs = payload_memory(topk);
  clear();
  fill(base, N, normal, 1);
  for (size_t i = 0; i < N; i++) {
    other[i] = i % 2 == 0 ? base[i] : base[N - 1 - i];
  }
  encode_into(topk, base, residual, LCOMM_TOPK_HOLD, p.mine);
  encode_into(topk, other, NULL, LCOMM_TOPK_HOLD, p.theirs);
  lcomm_topk_destroy(topk);
  p.here = entries_of(&p.format, p.mine);
  p.there = entries_of(&p.format, p.theirs);
  return p;
}

static void free_pair(payload_pair *p) {
  free(p->mine), free(p->theirs);
  free(p->here), free(p->there);
}

static void commit_takes_only_what_was_applied(void **state) {
  (void)state;
  for (int variant = 0; variant < VARIANTS; variant++) {
    payload_pair p = make_pair(variant);
    lcomm_topk_decode(&p.format, p.mine, N, 1, 0, 1.0f, sent);
    memcpy(before, residual, sizeof before);
    lcomm_topk_commit(&p.format, p.mine, p.theirs, 1, 0, residual);
    size_t common = 0;
    for (size_t i = 0; i < N; i++) {
      common += p.here[i] && p.there[i];
      assert_true(residual[i] == (p.here[i] && p.there[i] ? before[i] - sent[i] : before[i]));
    }
    assert_in_range(common, 300, 1300);
    free_pair(&p);
  }
}

static void mask_clears_what_commit_commits(void **state) {
  (void)state;
  for (int variant = 0; variant < VARIANTS; variant++) {
    payload_pair p = make_pair(variant);
    float *both = sample_memory(N * sizeof *both), *one = sample_memory(N * sizeof *one);
    fill(both, N, any_bits, 3);
    fill(one, N, any_bits, 3);
    fill(other, N, any_bits, 3);
    lcomm_topk_mask(&p.format, p.mine, p.theirs, 1, 0, both);
    lcomm_topk_mask(&p.format, p.mine, NULL, 1, 0, one);
    size_t masked = 0;
    for (size_t i = 0; i < N; i++) {
      masked += p.here[i];
      assert_same_float(one[i], p.here[i] ? 0.0f : other[i]);
      assert_same_float(both[i], p.here[i] && p.there[i] ? 0.0f : other[i]);
    }
    assert_int_equal(masked, lcomm_topk_entries(0.05, N));
    free(both), free(one);
    free_pair(&p);
  }
}

/* NaN was sent: the value has left, its momentum is stale or NaN itself. */
static void mask_reaches_its_part_whatever_was_sent(void **state) {
  (void)state;
  topk_encoder e = part_encoder(&count_n, 0.01, LCOMM_TOPK_INT8, 3, 1);
  fill(base, N, all_nan, 1);
  encode(&e, base, NULL, LCOMM_TOPK_HOLD);
  for (size_t i = 0; i < N; i++) {
    other[i] = SAMPLE_NAN;
  }
  lcomm_topk_mask(&e.format, e.payload, NULL, 3, 1, other);
  uint64_t total = lcomm_topk_total(e.topk);
  for (uint64_t i = 0; i < N; i++) { /* equal magnitudes: the lowest indices */
    bool mine = lcomm_stripe_owner(i, 3) == 1 && lcomm_stripe_local(i, 3) < total;
    assert_true(mine ? other[i] == 0.0f : (bool)isnan(other[i]));
  }
  free_encoder(&e);
}

static void one_bad_gradient_leaves_no_trace(void **state) {
  (void)state;
  for (int variant = 0; variant < VARIANTS; variant++) {
    topk_encoder e = whole_encoder(&count_n, 0.01, variant);
    clear();
    fill(base, N, all_nan, 1);
    encode(&e, base, residual, LCOMM_TOPK_HOLD);
    lcomm_topk_decode(&e.format, e.payload, N, 1, 0, 1.0f, sent);
    assert_true(isnan(sent[0])); /* the peers are told */
    for (size_t i = 0; i < N; i++) {
      assert_true(residual[i] == 0.0f);
    }
    free_encoder(&e);
  }
}

static void finite_values_are_never_sent_as_an_infinite_bf16(void **state) {
  (void)state;
  const uint64_t count = 3;
  topk_encoder e = whole_encoder(&count, 1.0, LCOMM_VARIANT_PLAIN);
  const float huge[] = {3.4028235e38f, -3.4028235e38f, 1.0f};
  float left[3] = {0}, got[3];
  encode(&e, huge, left, LCOMM_TOPK_RELEASE);
  lcomm_topk_decode(&e.format, e.payload, 3, 1, 0, 1.0f, got);
  for (int i = 0; i < 3; i++) {
    assert_true(isfinite(got[i]));
    assert_true(got[i] + left[i] == huge[i]);
  }
  assert_true(left[0] > 0.0f && left[1] < 0.0f && left[2] == 0.0f);
  free_encoder(&e);
}

static float owner_keeps(float kept, float weight, float value, float got) {
  float sum = kept + weight * released(value, got);
  return isfinite(sum) ? sum : 0.0f;
}

static void owner_keeps_the_weighted_error_of_what_it_sent(void **state) {
  (void)state;
  for (int variant = 0; variant < VARIANTS; variant++) {
    topk_encoder e = part_encoder(&count_n, 0.02, variant, 2, 1);
    uint8_t *plain = payload_memory(e.topk);
    size_t size, plain_size;
    fill(base, N, rarely_not_finite, 1);
    fill(residual, N, normal, 2);
    residual[N - 1] = SAMPLE_NAN; /* of part 1, and will be sent */
    base[N - 1] = 1e30f;
    memcpy(before, residual, sizeof before);
    plain_size = encode_into(e.topk, base, NULL, LCOMM_TOPK_HOLD, plain);
    lcomm_topk_encode_owner(e.topk, lcomm_kernels_best(), base, residual, 4.0f, e.payload, &size);
    assert_int_equal(size, plain_size);
    assert_memory_equal(e.payload, plain, size);
    for (size_t i = 0; i < N; i++) {
      other[i] = 1.0f;
    }
    lcomm_topk_mask(&e.format, e.payload, NULL, 2, 1, other);
    lcomm_topk_decode(&e.format, e.payload, N, 2, 1, 1.0f, sent);
    for (size_t i = 0; i < N; i++) {
      bool chosen = other[i] == 0.0f;
      float expected = chosen ? owner_keeps(before[i], 4.0f, base[i], sent[i]) : before[i];
      assert_true(residual[i] == expected);
    }
    lcomm_topk_encode_owner(e.topk, lcomm_kernels_best(), base, NULL, 4.0f, e.payload, &size);
    assert_memory_equal(e.payload, plain, size);
    free(plain);
    free_encoder(&e);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sent_and_residual_make_up_what_came_in),
    cmocka_unit_test(steps_add_up_to_the_sum_of_gradients),
    cmocka_unit_test(settling_a_held_payload_is_releasing_it),
    cmocka_unit_test(commit_takes_only_what_was_applied),
    cmocka_unit_test(mask_clears_what_commit_commits),
    cmocka_unit_test(mask_reaches_its_part_whatever_was_sent),
    cmocka_unit_test(one_bad_gradient_leaves_no_trace),
    cmocka_unit_test(finite_values_are_never_sent_as_an_infinite_bf16),
    cmocka_unit_test(owner_keeps_the_weighted_error_of_what_it_sent),
};
RUN_TESTS(tests)

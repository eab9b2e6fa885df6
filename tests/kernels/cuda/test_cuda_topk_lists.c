/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Payloads of top-k that are read together on a device give the bytes of the CPU. */

#include "tests/kernels/cuda/topk_sent.h"
#include "tests/support/unit_tests.h"

enum { PAYLOADS = LCOMM_CUDA_LIST_MAX };

/* ------------------------------------------------------------------- decode */

/* Stripes of one vector, as results of several owners are. */
static void decode_stripes(uint32_t parts, uint64_t count, double density, int variant,
                           uint64_t more) {
  sent all[PAYLOADS];
  lcomm_cuda_topk_decode list[PAYLOADS];
  vectors v = make_vectors(count, normal);
  for (uint32_t i = 0; i < parts; i++) {
    const geometry g = {count, parts, i};
    all[i] = make_sent(g, density, variant, clustered, i + 1);
    if (i % 2 == 1 && more > 0) { /* who launches does not know */
      say_more(&all[i], more, (size_t)more);
    }
    list[i] = (lcomm_cuda_topk_decode){.payload = sparse_of(&all[i]), .base = v.found};
    lcomm_topk_decode(&all[i].format, all[i].payload, count, parts, i, 0.5f, v.expected);
  }
  assert_int_equal(lcomm_cuda_run_topk_decode_list(list, parts, 0.5f, NULL), 0);
  compare_and_free(&v);
  for (uint32_t i = 0; i < parts; i++) {
    free_sent(&all[i]);
  }
}

static void lists_are_decoded(void **state) {
  (void)state;
  for (int variant = 0; variant < VARIANTS; variant++) {
    decode_stripes(1, 5000, 0.1, variant, 0);
    decode_stripes(3, 20000, 0.02, variant, 900);
    decode_stripes(7, 40000, 0.5, variant, 9000);
    decode_stripes(PAYLOADS, 200000, 0.01, variant, 0);
  }
}

/* Some have one strip and others many, some leaps. */
static void lists_have_long_and_short_payloads(void **state) {
  static const uint64_t counts[] = {0, 33, 400000, 700, 2300000};
  enum { LISTED = sizeof counts / sizeof *counts };
  sent all[LISTED];
  vectors v[LISTED];
  lcomm_cuda_topk_decode list[LISTED];
  (void)state;
  for (int i = 0; i < LISTED; i++) {
    const geometry g = {counts[i], 1, 0};
    all[i] = make_sent(g, i == LISTED - 1 ? 0.2 : 0.5, 0, normal, (uint64_t)i);
    v[i] = make_vectors(counts[i], normal);
    list[i] = (lcomm_cuda_topk_decode){.payload = sparse_of(&all[i]), .base = v[i].found};
    lcomm_topk_decode(&all[i].format, all[i].payload, counts[i], 1, 0, 1.0f, v[i].expected);
  }
  assert_int_equal(lcomm_cuda_run_topk_decode_list(list, LISTED, 1.0f, NULL), 0);
  for (int i = 0; i < LISTED; i++) {
    compare_and_free(&v[i]);
    free_sent(&all[i]);
  }
}

/* ---------------------------------------------------------------------- add */

/* In their order: where several have an entry of one position, sums are rounded after each. */
static void lists_are_added_in_order(void **state) {
  enum { SUMMANDS = 9, COUNT = 30000 };
  (void)state;
  for (int variant = 0; variant < VARIANTS; variant++) {
    sent all[SUMMANDS];
    lcomm_cuda_sparse list[SUMMANDS];
    vectors v = make_vectors(COUNT, normal);
    for (int i = 0; i < SUMMANDS; i++) {
      const geometry g = {COUNT, 1, 0};
      all[i] = make_sent(g, 0.4, variant, normal, (uint64_t)i + 3);
      list[i] = sparse_of(&all[i]);
      lcomm_topk_add(&all[i].format, all[i].payload, 1, 0, 0.25f, v.expected);
    }
    assert_int_equal(lcomm_cuda_run_topk_add_list(list, SUMMANDS, 0.25f, v.found, NULL), 0);
    compare_and_free(&v);
    for (int i = 0; i < SUMMANDS; i++) {
      free_sent(&all[i]);
    }
  }
}

/* ------------------------------------------------------------------- nothing */

static void lists_may_be_empty(void **state) {
  (void)state;
  assert_int_equal(lcomm_cuda_run_topk_decode_list(NULL, 0, 1.0f, NULL), 0);
  assert_int_equal(lcomm_cuda_run_topk_add_list(NULL, 0, 1.0f, NULL, NULL), 0);
}

static void impossible_lists_are_refused(void **state) {
  const geometry g = {1000, 1, 0};
  float vector[1] = {5.0f};
  lcomm_cuda_topk_decode list[2];
  (void)state;
  sent s = make_sent(g, 0.1, 0, normal, 1);
  for (int i = 0; i < IMPOSSIBLE; i++) {
    lcomm_cuda_sparse a = impossible(&s, i);
    list[0] = (lcomm_cuda_topk_decode){.payload = sparse_of(&s), .base = vector};
    list[1] = (lcomm_cuda_topk_decode){.payload = a, .base = vector};
    assert_int_not_equal(lcomm_cuda_run_topk_decode_list(list, 2, 1.0f, NULL), 0);
    assert_int_not_equal(lcomm_cuda_run_topk_add_list(&a, 1, 1.0f, vector, NULL), 0);
  }
  assert_int_not_equal(lcomm_cuda_run_topk_decode_list(list, PAYLOADS + 1, 1.0f, NULL), 0);
  assert_int_not_equal(lcomm_cuda_run_topk_add_list(NULL, PAYLOADS + 1, 1.0f, vector, NULL), 0);
  assert_true(vector[0] == 5.0f);
  free_sent(&s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(lists_are_decoded),
    cmocka_unit_test(lists_have_long_and_short_payloads),
    cmocka_unit_test(lists_are_added_in_order),
    cmocka_unit_test(lists_may_be_empty),
    cmocka_unit_test(impossible_lists_are_refused),
};
RUN_TESTS(tests)

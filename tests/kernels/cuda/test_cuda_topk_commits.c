/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Results of top-k that are read together on a device, and what of that which was sent leaves
 * residuals by them, give the bytes of the CPU. */

#include "tests/kernels/cuda/topk_sent.h"
#include "tests/support/unit_tests.h"

enum { PAYLOADS = LCOMM_CUDA_LIST_MAX, COMMITS = LCOMM_CUDA_COMMITS_MAX };

/* Results of several owners, of one vector, and what was sent to each. */
typedef struct results {
  uint32_t parts;
  uint64_t count;
  sent sent[COMMITS], applied[COMMITS];
  uint32_t *positions[COMMITS];
  vectors sum, residual, momentum;
} results;

static results make_results(uint32_t parts, uint64_t count, double density, int variant) {
  results r = {.parts = parts,
               .count = count,
               .sum = make_vectors(count, normal),
               .residual = make_vectors(count, rarely_not_finite),
               .momentum = make_vectors(count, normal)};
  for (uint32_t i = 0; i < parts; i++) {
    const geometry g = {count, parts, i};
    r.sent[i] = make_sent(g, density, variant, rarely_not_finite, i + 1);
    r.applied[i] = make_sent(g, i % 3 == 2 ? 1.0 : density, variant, clustered, i + 40);
    r.positions[i] = sample_memory(r.applied[i].entries * sizeof(uint32_t));
  }
  return r;
}

static void free_results(results *r) {
  compare_and_free(&r->sum);
  compare_and_free(&r->residual);
  compare_and_free(&r->momentum);
  for (uint32_t i = 0; i < r->parts; i++) {
    free_sent(&r->sent[i]);
    free_sent(&r->applied[i]);
    free(r->positions[i]);
  }
}

/* Of each fifth nothing was sent that is asked for, of each second one momentum is masked. */
static lcomm_cuda_topk_decode piece_of(const results *r, uint32_t i) {
  return (lcomm_cuda_topk_decode){.payload = sparse_of(&r->applied[i]),
                                  .base = r->sum.found,
                                  .residual = i % 5 == 4 ? NULL : r->residual.found,
                                  .momentum = i % 2 == 0 ? r->momentum.found : NULL,
                                  .sent = sparse_of(&r->sent[i]),
                                  .positions = r->positions[i]};
}

static void expect_piece(const results *r, uint32_t i) {
  const sent *mine = &r->sent[i], *theirs = &r->applied[i];
  lcomm_topk_decode(&theirs->format, theirs->payload, r->count, r->parts, i, 0.5f, r->sum.expected);
  if (i % 5 == 4) {
    return;
  }
  lcomm_topk_commit(&mine->format, mine->payload, theirs->payload, r->parts, i,
                    r->residual.expected);
  if (i % 2 == 0) {
    lcomm_topk_mask(&mine->format, mine->payload, theirs->payload, r->parts, i,
                    r->momentum.expected);
  }
}

static void decode_results(uint32_t parts, uint64_t count, double density, int variant) {
  lcomm_cuda_topk_decode list[COMMITS];
  results r = make_results(parts, count, density, variant);
  for (uint32_t i = 0; i < parts; i++) {
    list[i] = piece_of(&r, i);
    expect_piece(&r, i);
  }
  assert_int_equal(lcomm_cuda_run_topk_decode_list(list, parts, 0.5f, NULL), 0);
  free_results(&r);
}

static void what_was_sent_and_applied_leaves_residuals(void **state) {
  (void)state;
  for (int variant = 0; variant < VARIANTS; variant++) {
    decode_results(1, 1, 1.0, variant);
    decode_results(1, 5000, 0.1, variant);
    decode_results(3, 20000, 0.02, variant);
    decode_results(7, 40000, 0.5, variant);
    decode_results(COMMITS, 200000, 0.01, variant);
  }
}

static void long_results_leave_residuals_by_many_blocks(void **state) {
  (void)state;
  decode_results(1, 700000, 0.4, 0);
  decode_results(2, 2300000, 0.2, 1);
}

/* What was sent is applied by results that are not of top-k. */
static void all_that_was_sent_leaves_residuals_without_a_payload(void **state) {
  (void)state;
  for (uint32_t parts = 1; parts <= COMMITS; parts += 5) {
    lcomm_cuda_topk_decode list[COMMITS];
    results r = make_results(parts, 20000, 0.1, (int)parts % VARIANTS);
    for (uint32_t i = 0; i < parts; i++) {
      const sent *s = &r.sent[i];
      list[i] = (lcomm_cuda_topk_decode){
          .residual = r.residual.found, .momentum = r.momentum.found, .sent = sparse_of(s)};
      lcomm_topk_commit(&s->format, s->payload, NULL, parts, i, r.residual.expected);
      lcomm_topk_mask(&s->format, s->payload, NULL, parts, i, r.momentum.expected);
    }
    assert_int_equal(lcomm_cuda_run_topk_decode_list(list, parts, 0.5f, NULL), 0);
    free_results(&r);
  }
}

static void order_of_threads_does_not_matter(void **state) {
  (void)state;
  for (lcomm_emulated_order = 1; lcomm_emulated_order <= 3; lcomm_emulated_order++) {
    decode_results(5, 60000, 0.3, 0);
  }
  lcomm_emulated_order = 0;
}

/* What nobody has, and what was not there to be sent, leaves nothing. */
static void nothing_leaves_without_entries(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    results r = make_results(1, 3000, 0.1, 0);
    lcomm_cuda_topk_decode one = piece_of(&r, 0);
    lcomm_topk_decode(&r.applied[0].format, r.applied[0].payload, 3000, 1, 0, 0.5f, r.sum.expected);
    if (i == 0) { /* that cannot be */
      one.sent.entries = 0;
    } else if (i == 1) { /* it says so itself */
      memset(r.sent[0].payload, 0, sizeof(uint32_t));
    } else {
      memset(r.sum.expected, 0, r.sum.size);
      one.payload.entries = i == 2 ? 0 : one.payload.entries;
      memset(r.applied[0].payload, i == 2 ? 1 : 0, sizeof(uint32_t));
    }
    assert_int_equal(lcomm_cuda_run_topk_decode_list(&one, 1, 0.5f, NULL), 0);
    free_results(&r);
  }
}

/* They were judged before; if they are others now, only values of the view suffer. */
static void changed_results_do_no_harm(void **state) {
  uint64_t random = 5;
  (void)state;
  for (int round = 0; round < 60; round++) {
    results r = make_results(3, 9000, round % 2 == 0 ? 0.1 : 0.9, round / 2 % VARIANTS);
    lcomm_cuda_topk_decode one = piece_of(&r, 1);
    one.momentum = r.momentum.found;
    for (int i = 0; i < 1 + round % 20 * 20; i++) {
      sent *of = i % 2 == 0 ? &r.applied[1] : &r.sent[1];
      of->payload[sample_u64(&random) % of->size] = (uint8_t)sample_u64(&random);
    }
    assert_int_equal(lcomm_cuda_run_topk_decode_list(&one, 1, 1.0f, NULL), 0);
    for (uint64_t i = 0; i < r.count; i++) {
      if (lcomm_stripe_owner(i, r.parts) == 1) {
        r.sum.expected[i] = r.sum.found[i];
        r.residual.expected[i] = r.residual.found[i];
        r.momentum.expected[i] = r.momentum.found[i];
      }
    }
    free_results(&r);
  }
}

static void too_long_and_impossible_commits_are_refused(void **state) {
  lcomm_cuda_topk_decode list[PAYLOADS];
  (void)state;
  results r = make_results(1, 1000, 0.1, 0);
  for (int i = 0; i < IMPOSSIBLE; i++) {
    list[0] = piece_of(&r, 0);
    list[0].sent = impossible(&r.sent[0], i);
    assert_int_not_equal(lcomm_cuda_run_topk_decode_list(list, 1, 1.0f, NULL), 0);
  }
  for (int i = 0; i < PAYLOADS; i++) {
    list[i] = piece_of(&r, 0);
  }
  assert_int_not_equal(lcomm_cuda_run_topk_decode_list(list, COMMITS + 1, 1.0f, NULL), 0);
  assert_int_not_equal(lcomm_cuda_run_topk_decode_list(list, PAYLOADS, 1.0f, NULL), 0);
  free_results(&r);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_was_sent_and_applied_leaves_residuals),
    cmocka_unit_test(long_results_leave_residuals_by_many_blocks),
    cmocka_unit_test(all_that_was_sent_leaves_residuals_without_a_payload),
    cmocka_unit_test(order_of_threads_does_not_matter),
    cmocka_unit_test(nothing_leaves_without_entries),
    cmocka_unit_test(changed_results_do_no_harm),
    cmocka_unit_test(too_long_and_impossible_commits_are_refused),
};
RUN_TESTS(tests)

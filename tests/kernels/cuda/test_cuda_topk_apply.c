/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the receiver of a top-k payload does with it on a device gives the bytes of
 * the CPU, and bytes that change after they were checked do no harm. */

#include "tests/kernels/cuda/topk_sent.h"
#include "tests/support/unit_tests.h"

/* ---------------------------------------------------------------- add, decode */

static void add_and_decode(const sent *s, float factor) {
  lcomm_cuda_sparse a = sparse_of(s);
  vectors v = make_vectors(s->base_count, normal);
  lcomm_topk_add(&s->format, s->payload, s->parts, s->part, factor, v.expected);
  assert_int_equal(lcomm_cuda_run_topk_add(&a, factor, v.found, NULL), 0);
  compare_and_free(&v);
  v = make_vectors(s->base_count, normal);
  lcomm_topk_decode(&s->format, s->payload, s->base_count, s->parts, s->part, factor, v.expected);
  assert_int_equal(lcomm_cuda_run_topk_decode(&a, factor, v.found, NULL), 0);
  compare_and_free(&v);
}

static void every_payload_is_added_and_decoded(void **state) {
  (void)state;
  static const geometry geometries[] = {{0, 1, 0},     {1, 1, 0},     {33, 1, 0},    {5000, 1, 0},
                                        {20000, 3, 1}, {20000, 7, 6}, {40000, 1, 0}, {40000, 2, 1}};
  static const double densities[] = {0.001, 0.02, 0.5, 1.0};
  for (size_t i = 0; i < sizeof geometries / sizeof *geometries; i++) {
    for (size_t j = 0; j < sizeof densities / sizeof *densities; j++) {
      for (int variant = 0; variant < VARIANTS; variant++) {
        sent s = make_sent(geometries[i], densities[j], variant, clustered, i + j + 1);
        add_and_decode(&s, variant == 0 ? 1.0f : 0.125f);
        free_sent(&s);
      }
    }
  }
}

static void every_kind_of_value_is_added_and_decoded(void **state) {
  (void)state;
  const geometry g = {12000, 1, 0};
  for (int kind = 0; kind < KINDS; kind++) {
    for (int variant = 0; variant < VARIANTS; variant++) {
      sent s = make_sent(g, 0.1, variant, kinds[kind], 5);
      add_and_decode(&s, -3.0f);
      add_and_decode(&s, 0.0f);
      free_sent(&s);
    }
  }
}

/* Index blocks of all sizes, many strips of them. */
static void long_payloads_are_read_by_many_blocks(void **state) {
  (void)state;
  const geometry g = {400000, 1, 0};
  sent dense = make_sent(g, 1.0, 0, normal, 1), sparse = make_sent(g, 0.05, 0, clustered, 2);
  add_and_decode(&dense, 1.0f);
  add_and_decode(&sparse, 0.5f);
  free_sent(&dense);
  free_sent(&sparse);
}

static void more_may_be_readable_than_there_is(void **state) {
  (void)state;
  const geometry g = {30000, 1, 0};
  for (int variant = 0; variant < VARIANTS; variant++) {
    for (uint64_t entries = 0; entries <= 27000; entries += 9000) {
      sent s = make_sent(g, 0.1, variant, normal, 3);
      say_more(&s, entries, 9000);
      add_and_decode(&s, 1.0f);
      free_sent(&s);
    }
  }
}

/* So much more that strips which the index has not would be gone over by leaps. */
static void strips_may_be_readable_that_there_are_not(void **state) {
  (void)state;
  static const double densities[] = {0.001, 0.1, 0.4};
  const geometry g = {2300000, 1, 0};
  for (size_t i = 0; i < sizeof densities / sizeof *densities; i++) {
    sent s = make_sent(g, densities[i], 0, normal, 5);
    say_more(&s, g.base_count / 2, (size_t)150 * 4096);
    add_and_decode(&s, 1.0f);
    free_sent(&s);
  }
}

/* ---------------------------------------------------------------- commit, mask */

static void commit_and_mask(const sent *mine, const sent *theirs) {
  lcomm_cuda_sparse a = sparse_of(mine), b = theirs ? sparse_of(theirs) : a;
  const lcomm_cuda_sparse *applied = theirs ? &b : NULL;
  const uint8_t *payload = theirs ? theirs->payload : NULL;
  vectors v = make_vectors(mine->base_count, normal);
  lcomm_topk_commit(&mine->format, mine->payload, payload, mine->parts, mine->part, v.expected);
  assert_int_equal(lcomm_cuda_run_topk_commit(&a, applied, v.found, NULL), 0);
  compare_and_free(&v);
  v = make_vectors(mine->base_count, normal);
  lcomm_topk_mask(&mine->format, mine->payload, payload, mine->parts, mine->part, v.expected);
  assert_int_equal(lcomm_cuda_run_topk_mask(&a, applied, v.found, NULL), 0);
  compare_and_free(&v);
}

/* Either may have fewer than there can be, or none. */
static void selections_are_as_long_as_they_say(void **state) {
  (void)state;
  static const double densities[] = {0.002, 0.1};
  const geometry g = {20000, 1, 0};
  for (int i = 0; i < 8; i++) {
    int variant = i % VARIANTS;
    sent mine = make_sent(g, densities[i / 2 % 2], variant, normal, 1);
    sent theirs = make_sent(g, densities[i / 4], variant, clustered, 2);
    say_more(&mine, 5000, 20000);
    say_more(&theirs, 20000 - theirs.entries, 60000);
    commit_and_mask(&mine, &theirs);
    memset(theirs.payload, 0, sizeof(uint32_t));
    commit_and_mask(&mine, &theirs);
    memset(mine.payload, 0, sizeof(uint32_t));
    commit_and_mask(&mine, NULL);
    free_sent(&mine);
    free_sent(&theirs);
  }
}

static void what_was_sent_and_applied_is_committed_and_masked(void **state) {
  (void)state;
  static const geometry geometries[] = {
      {0, 1, 0}, {1, 1, 0}, {40, 1, 0}, {9000, 1, 0}, {50000, 3, 2}};
  static const double densities[] = {0.002, 0.1, 0.9};
  for (size_t i = 0; i < sizeof geometries / sizeof *geometries; i++) {
    for (size_t j = 0; j < 9; j++) {
      int variant = (int)(j % VARIANTS);
      sent mine = make_sent(geometries[i], densities[j / 3], variant, rarely_not_finite, i + 1);
      sent theirs = make_sent(geometries[i], densities[j % 3], variant, normal, i + 2);
      commit_and_mask(&mine, &theirs);
      commit_and_mask(&mine, NULL);
      free_sent(&mine);
      free_sent(&theirs);
    }
  }
}

/* So many strips that they are gone over by leaps, and a rest of them. */
static void very_long_payloads_are_read_by_leaps(void **state) {
  (void)state;
  const geometry g = {2300000, 1, 0};
  const size_t leap = (size_t)32 * 4096; /* LEAP strips, see kernels/cuda/cuda_topk_reader.cuh */
  sent s = make_sent(g, 0.4, 0, normal, 1), other = make_sent(g, 0.01, 0, normal, 2);
  assert_in_range(s.size - 2 * s.entries, 2 * leap + 8192, 4 * leap);
  add_and_decode(&s, 1.0f);
  commit_and_mask(&other, &s);
  free_sent(&other);
  free_sent(&s);
}

static void order_of_threads_does_not_matter(void **state) {
  (void)state;
  const geometry g = {60000, 2, 1};
  for (int variant = 0; variant < VARIANTS; variant++) {
    sent mine = make_sent(g, 0.3, variant, clustered, 1);
    sent theirs = make_sent(g, 0.2, variant, normal, 2);
    for (lcomm_emulated_order = 1; lcomm_emulated_order <= 3; lcomm_emulated_order++) {
      add_and_decode(&mine, 1.0f);
      commit_and_mask(&mine, &theirs);
    }
    lcomm_emulated_order = 0;
    free_sent(&mine);
    free_sent(&theirs);
  }
}

/* --------------------------------------------------------------- hostile bytes */

/* They were judged before; if they are others now, only the values of the view
 * suffer. */
static void changed_bytes_do_no_harm(void **state) {
  (void)state;
  uint64_t random = 9;
  static const geometry geometries[] = {{30000, 3, 1}, {9000, 2, 0}, {40, 1, 0}};
  for (int round = 0; round < 120; round++) {
    const geometry g = geometries[round % 3];
    sent s = make_sent(g, round % 2 == 0 ? 0.1 : 0.9, round / 2 % VARIANTS, normal, 4);
    vectors v = make_vectors(g.base_count, normal);
    lcomm_cuda_sparse a = sparse_of(&s);
    for (int i = 0; i < 1 + round % 30 * 20; i++) {
      s.payload[sample_u64(&random) % s.size] = (uint8_t)sample_u64(&random);
    }
    assert_int_equal(lcomm_cuda_run_topk_add(&a, 1.0f, v.found, NULL), 0);
    assert_int_equal(lcomm_cuda_run_topk_commit(&a, NULL, v.found, NULL), 0);
    for (uint64_t i = 0; i < g.base_count; i++) {
      if (lcomm_stripe_owner(i, g.parts) != g.part) {
        assert_memory_equal(&v.found[i], &v.expected[i], sizeof(float));
      }
    }
    free(v.expected);
    free(v.found);
    free_sent(&s);
  }
}

/* More entries than there can be, or no byte is left for their positions. */
static void impossible_numbers_of_entries_are_none(void **state) {
  (void)state;
  const geometry g = {1000, 1, 0};
  for (int variant = 0; variant < VARIANTS; variant++) {
    sent s = make_sent(g, 0.1, variant, normal, 1), none = make_sent(g, 0.1, variant, normal, 1);
    vectors v = make_vectors(g.base_count, normal);
    for (int i = 0; i < 4; i++) {
      static const uint32_t impossible[] = {101, 1u << 31, UINT32_MAX};
      lcomm_cuda_sparse a = sparse_of(&s), all = sparse_of(&none);
      if (i == 3) {
        a = all;
        a.size = variant == 0 ? 204 : 108;
      } else {
        memcpy(s.payload, &impossible[i], sizeof impossible[i]);
      }
      assert_int_equal(lcomm_cuda_run_topk_add(&a, 1.0f, v.found, NULL), 0);
      assert_int_equal(lcomm_cuda_run_topk_commit(&a, NULL, v.found, NULL), 0);
      if (i < 3) {
        assert_int_equal(lcomm_cuda_run_topk_mask(&all, &a, v.found, NULL), 0);
      }
    }
    compare_and_free(&v);
    free_sent(&s);
    free_sent(&none);
  }
}

static void impossible_payloads_are_refused(void **state) {
  (void)state;
  const geometry g = {1000, 1, 0};
  sent s = make_sent(g, 0.1, 0, normal, 1);
  float vector[1];
  for (int i = 0; i < IMPOSSIBLE; i++) {
    lcomm_cuda_sparse a = impossible(&s, i);
    assert_int_not_equal(lcomm_cuda_run_topk_add(&a, 1.0f, vector, NULL), 0);
    assert_int_not_equal(lcomm_cuda_run_topk_decode(&a, 1.0f, vector, NULL), 0);
    assert_int_not_equal(lcomm_cuda_run_topk_commit(&a, NULL, vector, NULL), 0);
  }
  free_sent(&s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_payload_is_added_and_decoded),
    cmocka_unit_test(every_kind_of_value_is_added_and_decoded),
    cmocka_unit_test(long_payloads_are_read_by_many_blocks),
    cmocka_unit_test(very_long_payloads_are_read_by_leaps),
    cmocka_unit_test(more_may_be_readable_than_there_is),
    cmocka_unit_test(strips_may_be_readable_that_there_are_not),
    cmocka_unit_test(selections_are_as_long_as_they_say),
    cmocka_unit_test(what_was_sent_and_applied_is_committed_and_masked),
    cmocka_unit_test(order_of_threads_does_not_matter),
    cmocka_unit_test(changed_bytes_do_no_harm),
    cmocka_unit_test(impossible_numbers_of_entries_are_none),
    cmocka_unit_test(impossible_payloads_are_refused),
};
RUN_TESTS(tests)

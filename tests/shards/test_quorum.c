/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The rule of a quorum, simulated: an owner and up to 64 ranks that are late at random. Each rank
 * contributes, waits for its result, and contributes again; time is a number. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/shards/quorum.h"
#include "tests/shards/draws.h"
#include "tests/support/unit_tests.h"

enum { ROUNDS = 200, RANKS_MOST = 64 };
static const double STEP_S = 0.001;

/* Servers: the first rank, or none. */
static const uint8_t *apart;
static const uint8_t first_rank[(RANKS_MOST + 7) / 8] = {1};

typedef struct world {
  lcomm_quorum quorum;
  uint64_t random;
  double now_s;
  double comes_s[RANKS_MOST];    /* when the next contribution of each rank does */
  uint64_t begun[RANKS_MOST];    /* contributions that were computed: their numbers */
  uint64_t used[RANKS_MOST];     /* those that were used, and */
  uint64_t returned[RANKS_MOST]; /* that came back */
  uint64_t sets[ROUNDS + 1];     /* of ranks in each round, as the first answer said */
  bool told[ROUNDS + 1];
} world;

/* Most steps take one unit, some ranks are always slow, and all pause now and then. */
static double draw_step_s(world *it, int rank) {
  return STEP_S * draw_step(&it->random, rank);
}

static void begin(world *it, int ranks, int needed, double late_s, unsigned kept, uint64_t seed) {
  lcomm_quorum_rule rule = {ranks, needed, late_s, kept, apart, NULL};
  memset(it, 0, sizeof *it);
  it->random = seed * 2 + 1;
  assert_true(lcomm_quorum_make(&it->quorum, &rule));
  for (int rank = 0; rank < ranks; rank++) {
    it->comes_s[rank] = draw_step_s(it, rank);
  }
}

static uint64_t set_of(const world *it, uint64_t round) {
  uint64_t set = 0;
  for (int rank = 0; rank < it->quorum.rule.ranks; rank++) {
    bool has = lcomm_quorum_mask_has(lcomm_quorum_used(&it->quorum, round), rank);
    set |= (uint64_t)has << rank;
  }
  return set;
}

/* A rank whose contribution is there waits; the others come when their time is there. */
static void let_them_come(world *it) {
  for (int rank = apart != NULL; rank < it->quorum.rule.ranks; rank++) {
    const lcomm_quorum_rank *known = &it->quorum.ranks[rank];
    if (known->came > known->answered || known->came == ROUNDS || it->comes_s[rank] > it->now_s) {
      continue;
    }
    bool is_open = known->came == it->quorum.open;
    lcomm_quorum_verdict verdict = lcomm_quorum_contribute(&it->quorum, rank, it->now_s);
    assert_int_equal(verdict, is_open ? LCOMM_QUORUM_COUNTS : LCOMM_QUORUM_LATE);
    it->begun[rank]++;
  }
}

static void close_rounds(world *it) {
  const lcomm_quorum_rule *rule = &it->quorum.rule;
  while (lcomm_quorum_may_close(&it->quorum, it->now_s)) {
    assert_true(it->quorum.there >= rule->needed);
    lcomm_quorum_close(&it->quorum);
  }
}

/* Every rank gets the same result of a round, and learns whether it was used. */
static void answer(world *it) {
  for (int rank = 0; rank < it->quorum.rule.ranks; rank++) {
    uint64_t round = it->quorum.ranks[rank].answered;
    if (!lcomm_quorum_may_answer(&it->quorum, rank)) {
      continue;
    }
    assert_true(it->quorum.open - round <= it->quorum.rule.kept);
    uint64_t set = set_of(it, round);
    assert_true(!it->told[round] || it->sets[round] == set);
    it->told[round] = true;
    it->sets[round] = set;
    it->used[rank] += set >> rank & 1;
    it->returned[rank] += !(set >> rank & 1);
    lcomm_quorum_answered(&it->quorum, rank);
    it->comes_s[rank] = it->now_s + draw_step_s(it, rank);
  }
}

/* Bounded: a rule that blocks would never come to the end. */
static void run(world *it) {
  int ranks = it->quorum.rule.ranks;
  bool all_over = false;
  for (uint64_t tick = 0; !all_over; tick++) {
    assert_true(tick < 1000ull * ROUNDS);
    it->now_s += STEP_S / 4;
    let_them_come(it);
    close_rounds(it);
    answer(it);
    all_over = true;
    for (int rank = apart != NULL; rank < ranks; rank++) {
      all_over &= it->quorum.ranks[rank].answered == ROUNDS;
    }
  }
}

static void every_contribution_is_used_once_or_returned_once(void **state) {
  (void)state;
  static const int sizes[] = {2, 3, 8, 16, 33, 64};
  static world it;
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    for (uint64_t seed = 0; seed < 6; seed++) {
      int ranks = sizes[i], needed = seed % 3 == 0 ? 1 : ranks - (int)(seed % 3) + 1;
      begin(&it, ranks, needed < 1 ? 1 : needed, (double)(seed % 2) * STEP_S,
            1 + (unsigned)seed * 3, seed + 100 * (uint64_t)ranks);
      run(&it);
      for (int rank = 0; rank < ranks; rank++) {
        assert_true(it.begun[rank] == ROUNDS);
        assert_true(it.used[rank] + it.returned[rank] == ROUNDS);
      }
      lcomm_quorum_free(&it.quorum);
    }
  }
}

static void servers_use_every_contribution_of_workers_once_or_return_it(void **state) {
  (void)state;
  static const int sizes[] = {2, 3, 8, 33, 64};
  static world it;
  apart = first_rank;
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    for (int spare = 0; spare < 3 && spare < sizes[i] - 1; spare++) {
      begin(&it, sizes[i], sizes[i] - 1 - spare, 0, 4, 17 + (uint64_t)(sizes[i] + spare));
      run(&it);
      assert_true(it.begun[0] == 0 && it.used[0] == 0 && it.returned[0] == 0);
      for (int rank = 1; rank < sizes[i]; rank++) {
        assert_true(it.used[rank] + it.returned[rank] == ROUNDS);
        assert_true(spare > 0 || it.returned[rank] == 0);
      }
      lcomm_quorum_free(&it.quorum);
    }
  }
  apart = NULL;
}

static void all_are_used_where_all_are_needed(void **state) {
  (void)state;
  static world it;
  begin(&it, 8, 8, 0, 2, 7);
  run(&it);
  for (int rank = 0; rank < 8; rank++) {
    assert_true(it.used[rank] == ROUNDS);
  }
  lcomm_quorum_free(&it.quorum);
}

static lcomm_quorum quorum_of(int ranks, int needed, double late_s, unsigned kept) {
  lcomm_quorum quorum;
  lcomm_quorum_rule rule = {ranks, needed, late_s, kept, NULL, NULL};
  assert_true(lcomm_quorum_make(&quorum, &rule));
  return quorum;
}

static void a_round_waits_for_the_late_ones_for_a_while(void **state) {
  (void)state;
  lcomm_quorum it = quorum_of(3, 2, 1, 4);
  assert_false(lcomm_quorum_may_close(&it, 100));
  assert_int_equal(lcomm_quorum_contribute(&it, 1, 100), LCOMM_QUORUM_COUNTS);
  assert_false(lcomm_quorum_may_close(&it, 200));
  assert_true(lcomm_quorum_due_s(&it) <= 0);
  assert_int_equal(lcomm_quorum_contribute(&it, 0, 200), LCOMM_QUORUM_COUNTS);
  assert_false(lcomm_quorum_may_close(&it, 200.5));
  assert_true(lcomm_quorum_due_s(&it) >= 201 && lcomm_quorum_due_s(&it) <= 201);
  assert_true(lcomm_quorum_may_close(&it, 201));
  assert_int_equal(lcomm_quorum_contribute(&it, 2, 200.5), LCOMM_QUORUM_COUNTS);
  assert_true(lcomm_quorum_may_close(&it, 200.5));
  assert_true(lcomm_quorum_due_s(&it) <= 0);
  lcomm_quorum_free(&it);
}

static void a_rank_that_is_far_behind_is_waited_for_and_named(void **state) {
  (void)state;
  lcomm_quorum it = quorum_of(2, 1, 0, 2);
  double since_s = 0;
  for (int round = 0; round < 2; round++) {
    assert_int_equal(lcomm_quorum_contribute(&it, 0, round), LCOMM_QUORUM_COUNTS);
    assert_true(lcomm_quorum_may_close(&it, round));
    lcomm_quorum_close(&it);
    assert_true(lcomm_quorum_may_answer(&it, 0));
    lcomm_quorum_answered(&it, 0);
  }
  assert_int_equal(lcomm_quorum_awaits(&it, &since_s), -1);
  assert_int_equal(lcomm_quorum_contribute(&it, 0, 2), LCOMM_QUORUM_COUNTS);
  assert_false(lcomm_quorum_may_close(&it, 1000));
  assert_int_equal(lcomm_quorum_awaits(&it, &since_s), 1);
  assert_true(since_s >= 2 && since_s <= 2);
  assert_int_equal(lcomm_quorum_contribute(&it, 1, 1000), LCOMM_QUORUM_LATE);
  assert_true(lcomm_quorum_may_answer(&it, 1));
  lcomm_quorum_answered(&it, 1);
  assert_true(lcomm_quorum_may_close(&it, 1000));
  lcomm_quorum_free(&it);
}

static void a_rank_that_was_not_answered_is_refused(void **state) {
  (void)state;
  lcomm_quorum it = quorum_of(3, 2, 0, 2);
  double since_s = 0;
  assert_int_equal(lcomm_quorum_contribute(&it, 0, 1), LCOMM_QUORUM_COUNTS);
  assert_int_equal(lcomm_quorum_contribute(&it, 0, 2), LCOMM_QUORUM_REFUSED);
  assert_int_equal(it.there, 1);
  assert_int_equal(lcomm_quorum_awaits(&it, &since_s), 1);
  lcomm_quorum_free(&it);
}

static void a_rank_that_is_apart_is_not_waited_for(void **state) {
  (void)state;
  lcomm_quorum_rule rule = {3, 2, 1000, 1, first_rank, NULL};
  lcomm_quorum it;
  double since_s = 0;
  assert_true(lcomm_quorum_make(&it, &rule));
  for (int round = 0; round < 5; round++) {
    assert_int_equal(lcomm_quorum_contribute(&it, 2, round), LCOMM_QUORUM_COUNTS);
    assert_int_equal(lcomm_quorum_awaits(&it, &since_s), 1);
    assert_false(lcomm_quorum_may_close(&it, round));
    assert_int_equal(lcomm_quorum_contribute(&it, 1, round), LCOMM_QUORUM_COUNTS);
    assert_true(lcomm_quorum_due_s(&it) <= 0);
    assert_true(lcomm_quorum_may_close(&it, round));
    lcomm_quorum_close(&it);
    assert_int_equal(lcomm_quorum_used(&it, (uint64_t)round)[0], 6);
    lcomm_quorum_answered(&it, 1);
    lcomm_quorum_answered(&it, 2);
  }
  lcomm_quorum_free(&it);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_contribution_is_used_once_or_returned_once),
    cmocka_unit_test(servers_use_every_contribution_of_workers_once_or_return_it),
    cmocka_unit_test(all_are_used_where_all_are_needed),
    cmocka_unit_test(a_round_waits_for_the_late_ones_for_a_while),
    cmocka_unit_test(a_rank_that_is_far_behind_is_waited_for_and_named),
    cmocka_unit_test(a_rank_that_was_not_answered_is_refused),
    cmocka_unit_test(a_rank_that_is_apart_is_not_waited_for),
};
RUN_TESTS(tests)

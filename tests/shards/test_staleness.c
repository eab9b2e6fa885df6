/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The rule of bounded staleness, simulated: an owner and up to 64 ranks, each of which goes on for
 * some steps without the newest results. Steps take random times, one rank in seven is slow, and
 * all pause now and then; time is a number. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/shards/staleness.h"
#include "tests/shards/draws.h"
#include "tests/support/unit_tests.h"

enum { ROUNDS = 150, RANKS_MOST = 64, LANES_MOST = 8, KEPT = 16 };
static const double STEP_S = 0.001;

typedef struct walker {
  lcomm_stale_rank is;
  double done_s; /* when it has computed what it contributes next */
  bool waits;    /* for a result, before it computes */
  uint64_t used, dropped;
  double sum; /* of the results that it took */
  uint64_t age_most;
  double brought, kept, sent; /* of unit gradients: in all, in the residual, used in results */
  float shares[ROUNDS];       /* what it brought to each round */
} walker;

typedef struct world {
  lcomm_stale_rule rule;
  int ranks;
  lcomm_quorum lanes[LANES_MOST];
  lcomm_quorum *views[LANES_MOST];
  walker of[RANKS_MOST];
  double results[ROUNDS];
  uint64_t sets[ROUNDS]; /* of ranks that were used */
  uint64_t closed;       /* rounds, all before the next one */
  uint64_t random;
  double now_s;
} world;

static double draw_step_s(world *it, int rank) {
  return STEP_S * draw_step(&it->random, rank);
}

static void begin(world *it, int ranks, unsigned steps, bool drops, uint64_t seed) {
  memset(it, 0, sizeof *it);
  it->rule = (lcomm_stale_rule){.steps = steps, .drops = drops};
  it->ranks = ranks;
  it->random = seed * 2 + 1;
  lcomm_quorum_rule rule = lcomm_stale_quorum(&it->rule, ranks, NULL, KEPT);
  for (unsigned i = 0; i < lcomm_stale_lanes(&it->rule); i++) {
    assert_true(lcomm_quorum_make(&it->lanes[i], &rule));
    it->views[i] = &it->lanes[i];
  }
  for (int rank = 0; rank < ranks; rank++) {
    it->of[rank].done_s = draw_step_s(it, rank);
  }
}

static void end(world *it) {
  for (unsigned i = 0; i < lcomm_stale_lanes(&it->rule); i++) {
    lcomm_quorum_free(&it->lanes[i]);
  }
}

/* A share of a unit gradient goes with what is kept. */
static void contribute(world *it, int rank) {
  walker *self = &it->of[rank];
  uint64_t round = self->is.contributed, age = lcomm_stale_age(&self->is);
  lcomm_quorum *lane = &it->lanes[lcomm_stale_lane(&it->rule, round)];
  float share = lcomm_stale_share(age);
  assert_true(lcomm_quorum_contribute(lane, rank, it->now_s) != LCOMM_QUORUM_REFUSED);
  self->shares[round] = share + (float)self->kept;
  self->kept = 0;
  self->brought += (double)share;
  self->age_most = age > self->age_most ? age : self->age_most;
  self->is.contributed++;
}

/* Round after round: none closes before the one before it has. */
static void close_rounds(world *it) {
  unsigned lane = lcomm_stale_lane(&it->rule, it->closed);
  while (it->closed < ROUNDS && lcomm_stale_may_close(&it->rule, it->views, lane, it->now_s)) {
    for (int rank = 0; rank < it->ranks; rank++) {
      bool is_in = lcomm_quorum_is_in(&it->lanes[lane], rank);
      it->results[it->closed] += is_in ? (double)it->of[rank].shares[it->closed] : 0;
      it->sets[it->closed] |= (uint64_t)is_in << rank;
    }
    lcomm_quorum_close(&it->lanes[lane]);
    it->closed++;
    lane = lcomm_stale_lane(&it->rule, it->closed);
  }
}

static void take(world *it, int rank) {
  walker *self = &it->of[rank];
  uint64_t round = self->is.taken;
  lcomm_quorum *lane = &it->lanes[lcomm_stale_lane(&it->rule, round)];
  bool is_used = it->sets[round] >> rank & 1;
  assert_true(lcomm_quorum_may_answer(lane, rank));
  lcomm_quorum_answered(lane, rank);
  self->sum += it->results[round];
  self->sent += is_used ? (double)self->shares[round] : 0;
  self->kept += is_used ? 0 : (double)self->shares[round];
  self->used += is_used;
  self->dropped += !is_used;
  self->is.taken++;
}

/* It computes, contributes, takes what is there, and waits only where the rule says so. */
static void move(world *it, int rank) {
  walker *self = &it->of[rank];
  if (self->is.contributed < ROUNDS && !self->waits && self->done_s <= it->now_s) {
    contribute(it, rank);
    self->waits = true;
  }
  if (!self->waits) {
    return;
  }
  while (self->is.taken < self->is.contributed && self->is.taken < it->closed) {
    take(it, rank);
  }
  bool is_last = self->is.contributed == ROUNDS;
  if (!is_last && !lcomm_stale_must_wait(&it->rule, &self->is)) {
    self->waits = false;
    self->done_s = it->now_s + draw_step_s(it, rank);
  }
}

static bool is_over(const world *it) {
  bool over = true;
  for (int rank = 0; rank < it->ranks; rank++) {
    over &= it->of[rank].is.taken == ROUNDS;
  }
  return over;
}

/* Bounded: a rule that blocks would never come to the end. Returns the time. */
static double run(world *it) {
  for (uint64_t tick = 0; !is_over(it); tick++) {
    assert_true(tick < 2000ull * ROUNDS);
    it->now_s += STEP_S / 4;
    for (int rank = 0; rank < it->ranks; rank++) {
      move(it, rank);
      close_rounds(it);
    }
  }
  return it->now_s;
}

/* What ranks brought is in results or kept; all took the same. */
static void check(const world *it) {
  for (int rank = 0; rank < it->ranks; rank++) {
    const walker *self = &it->of[rank];
    double whole = self->sent + self->kept;
    assert_true(self->used + self->dropped == ROUNDS);
    assert_true(whole > self->brought - 1e-3 && whole < self->brought + 1e-3);
    assert_true(self->age_most <= it->rule.steps);
    assert_true(self->sum >= it->of[0].sum && self->sum <= it->of[0].sum);
  }
}

static void every_contribution_is_used_once_and_none_is_too_old(void **state) {
  (void)state;
  static const int sizes[] = {2, 3, 8, 16, 33, 64};
  static world it;
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    for (unsigned steps = 1; steps < LANES_MOST; steps += 2) {
      begin(&it, sizes[i], steps, false, steps + 100 * (uint64_t)sizes[i]);
      run(&it);
      check(&it);
      for (int rank = 0; rank < sizes[i]; rank++) {
        assert_true(it.of[rank].dropped == 0);
      }
      end(&it);
    }
  }
}

static void what_is_dropped_is_kept_by_its_rank(void **state) {
  (void)state;
  static const int sizes[] = {2, 3, 8, 16, 33, 64};
  static world it;
  uint64_t dropped = 0;
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    for (unsigned steps = 1; steps < LANES_MOST; steps += 2) {
      begin(&it, sizes[i], steps, true, steps + 100 * (uint64_t)sizes[i]);
      run(&it);
      check(&it);
      for (int rank = 0; rank < sizes[i]; rank++) {
        dropped += it.of[rank].dropped;
      }
      end(&it);
    }
  }
  assert_true(dropped > 0);
}

/* Not asserted of times of a machine: these are numbers. */
static void pauses_cost_less_where_ranks_may_go_on(void **state) {
  (void)state;
  static world it;
  double waiting_s, going_on_s;
  begin(&it, 3, 0, false, 5);
  waiting_s = run(&it);
  end(&it);
  begin(&it, 3, 4, false, 5);
  going_on_s = run(&it);
  end(&it);
  assert_true(going_on_s < 0.95 * waiting_s);
}

static void a_rank_waits_when_it_is_so_many_steps_ahead(void **state) {
  (void)state;
  const lcomm_stale_rule rule = {.steps = 2};
  lcomm_stale_rank rank = {.contributed = 7, .taken = 5};
  assert_false(lcomm_stale_must_wait(&rule, &rank));
  assert_int_equal(lcomm_stale_age(&rank), 2);
  rank.contributed++;
  assert_true(lcomm_stale_must_wait(&rule, &rank));
  assert_true(lcomm_stale_share(0) >= 1 && lcomm_stale_share(1) >= 0.5f &&
              lcomm_stale_share(1) <= 0.5f);
  assert_int_equal(lcomm_stale_closed(&rule, 7, 0), 8);
  assert_int_equal(lcomm_stale_closed(&rule, 7, 2), 14);
}

/* Of three ranks two are a majority. Rank 2 never comes. */
static void a_round_closes_without_who_is_farther_behind_than_that(void **state) {
  (void)state;
  static world it;
  begin(&it, 3, 2, true, 1);
  for (uint64_t round = 0; round < 3; round++) {
    assert_false(lcomm_stale_may_close(&it.rule, it.views, 0, 1000));
    contribute(&it, 0);
    assert_false(lcomm_stale_may_close(&it.rule, it.views, 0, 1000));
    contribute(&it, 1);
  }
  assert_true(lcomm_stale_may_close(&it.rule, it.views, 0, 0));
  lcomm_quorum_close(&it.lanes[0]);
  assert_false(lcomm_stale_may_close(&it.rule, it.views, 0, 1000));
  end(&it);
  begin(&it, 3, 2, false, 1);
  for (uint64_t round = 0; round < 3; round++) {
    contribute(&it, 0);
    contribute(&it, 1);
  }
  assert_false(lcomm_stale_may_close(&it.rule, it.views, 0, 1000));
  end(&it);
}

/* Of three ranks rank 2 is behind; it has come to `came` rounds, the others to `rounds`. */
static void begin_behind(world *it, uint64_t came, uint64_t rounds) {
  begin(it, 3, 2, true, 1);
  for (uint64_t round = 0; round < rounds; round++) {
    contribute(it, 0);
    contribute(it, 1);
    if (round < came) {
      contribute(it, 2);
    }
  }
}

static void who_is_behind_is_waited_for_once(void **state) {
  (void)state;
  static world it;
  begin_behind(&it, 0, 3);
  for (unsigned lane = 0; lane < 3; lane++) {
    assert_true(lcomm_stale_may_close(&it.rule, it.views, lane, 0));
  }
  end(&it);
  begin_behind(&it, 1, 3);
  assert_true(lcomm_stale_may_close(&it.rule, it.views, 0, 0));
  assert_false(lcomm_stale_may_close(&it.rule, it.views, 1, 1000));
  assert_false(lcomm_stale_may_close(&it.rule, it.views, 2, 1000));
  end(&it);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_contribution_is_used_once_and_none_is_too_old),
    cmocka_unit_test(what_is_dropped_is_kept_by_its_rank),
    cmocka_unit_test(pauses_cost_less_where_ranks_may_go_on),
    cmocka_unit_test(a_rank_waits_when_it_is_so_many_steps_ahead),
    cmocka_unit_test(a_round_closes_without_who_is_farther_behind_than_that),
    cmocka_unit_test(who_is_behind_is_waited_for_once),
};
RUN_TESTS(tests)

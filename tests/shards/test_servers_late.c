/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Servers, simulated: 1 to 8 of them own the pieces that shard_roles.h cuts, and workers that are
 * late at random contribute to all pieces. Messages take random times, so servers see workers in
 * other orders, and decide by themselves. Time is a number. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/shards/shard_roles.h"
#include "libcomm/shards/staleness.h"
#include "tests/shards/draws.h"
#include "tests/support/unit_tests.h"

enum { ROUNDS = 60, RANKS_MOST = 64, SERVERS_MOST = 8, LANES_MOST = 4, KEPT = 16, COUNT = 40000 };
static const double STEP_S = 0.001;

/* How rounds close: quorum= of some workers, or stale=. */
typedef struct closing {
  int spare; /* workers that a quorum does without */
  lcomm_stale_rule stale;
} closing;

/* A piece, as its server has it. */
typedef struct piece {
  uint64_t count; /* elements; 0: there is no such piece */
  lcomm_quorum lanes[LANES_MOST];
  lcomm_quorum *views[LANES_MOST];
  double results[ROUNDS]; /* of each element */
  uint64_t sets[ROUNDS];  /* of ranks that were used */
  uint64_t closed;
} piece;

/* A worker, and one element of each piece, as all elements of a piece go the same way. */
typedef struct worker {
  lcomm_stale_rank is;
  double done_s; /* when it has computed what it contributes next */
  bool waits;
  uint64_t sent[RANKS_MOST];        /* contributions that have come to each server */
  double comes_s[RANKS_MOST];       /* when the next one does */
  float brought[ROUNDS];            /* of new gradients */
  float shares[RANKS_MOST][ROUNDS]; /* with what was kept */
  double kept[RANKS_MOST], used[RANKS_MOST], sum[RANKS_MOST];
} worker;

typedef struct world {
  lcomm_shard_roles roles;
  closing closes;
  piece pieces[RANKS_MOST];
  worker of[RANKS_MOST];
  uint64_t random;
  double now_s;
} world;

static unsigned lane_of(const world *it, uint64_t round) {
  return lcomm_stale_lane(&it->closes.stale, round);
}

static bool serves(const world *it, int rank) {
  return lcomm_shard_roles_serves(&it->roles, rank);
}

static void make_roles(world *it, int ranks, int servers) {
  lcomm_topo topo = {.size = ranks, .nodes = 1};
  lcomm_servers_policy policy = {.count = (unsigned)servers};
  lcomm_why why = {0};
  for (int i = 0; i < servers; i++) {
    policy.number[i] = (uint32_t)(i * ranks / servers);
    policy.share[i] = (uint32_t)(1 + i % 3);
  }
  assert_int_equal(lcomm_shard_roles_make(&policy, &topo, &it->roles, &why), LCOMM_OK);
}

static void make_piece(world *it, piece *made) {
  const lcomm_shard_roles *roles = &it->roles;
  lcomm_quorum_rule rule = {.ranks = roles->ranks,
                            .needed = roles->workers - it->closes.spare,
                            .kept = KEPT,
                            .apart = roles->apart};
  if (it->closes.stale.steps > 0) {
    rule = lcomm_stale_quorum(&it->closes.stale, roles->ranks, roles->apart, KEPT);
  }
  for (unsigned i = 0; i < lcomm_stale_lanes(&it->closes.stale); i++) {
    assert_true(lcomm_quorum_make(&made->lanes[i], &rule));
    made->views[i] = &made->lanes[i];
  }
}

static void begin(world *it, int ranks, int servers, closing closes) {
  lcomm_shard_cut_piece cut[RANKS_MOST];
  uint64_t elements = 0;
  memset(it, 0, sizeof *it);
  it->closes = closes;
  it->random = (uint64_t)(ranks * 100 + servers * 10) + closes.stale.steps;
  make_roles(it, ranks, servers);
  lcomm_shard_cut(&it->roles, COUNT, 8 * COUNT, cut);
  for (int rank = 0; rank < ranks; rank++) {
    assert_true(cut[rank].count == 0 || serves(it, rank));
    it->pieces[rank].count = cut[rank].count;
    elements += cut[rank].count;
    make_piece(it, &it->pieces[rank]);
    it->of[rank].done_s = STEP_S * draw_step(&it->random, rank);
  }
  assert_true(elements == COUNT);
}

static void end(world *it) {
  for (int rank = 0; rank < it->roles.ranks; rank++) {
    for (unsigned i = 0; i < lcomm_stale_lanes(&it->closes.stale); i++) {
      lcomm_quorum_free(&it->pieces[rank].lanes[i]);
    }
  }
  lcomm_shard_roles_free(&it->roles);
}

/* To all servers, where it arrives later. */
static void contribute(world *it, worker *self) {
  uint64_t round = self->is.contributed++;
  self->brought[round] = lcomm_stale_share(round - self->is.taken);
  for (int server = 0; server < it->roles.ranks; server++) {
    self->shares[server][round] = self->brought[round] + (float)self->kept[server];
    self->kept[server] = 0;
    if (self->sent[server] == round) {
      self->comes_s[server] = it->now_s + STEP_S * draw_next(&it->random);
    }
  }
}

/* In the order in which they were sent. */
static void arrive(world *it, int rank, int server) {
  worker *self = &it->of[rank];
  while (self->sent[server] < self->is.contributed && self->comes_s[server] <= it->now_s) {
    lcomm_quorum *lane = &it->pieces[server].lanes[lane_of(it, self->sent[server])];
    assert_true(lcomm_quorum_contribute(lane, rank, it->now_s) != LCOMM_QUORUM_REFUSED);
    self->sent[server]++;
    self->comes_s[server] = it->now_s + STEP_S * draw_next(&it->random);
  }
}

static void close_round(world *it, int server, unsigned lane) {
  piece *at = &it->pieces[server];
  uint64_t round = lcomm_stale_round(&it->closes.stale, lane, at->lanes[lane].open);
  assert_true(round == at->closed);
  assert_true(!it->closes.stale.drops || 2 * at->lanes[lane].there > it->roles.workers);
  for (int rank = 0; rank < it->roles.ranks; rank++) {
    bool is_in = lcomm_quorum_is_in(&at->lanes[lane], rank);
    at->results[round] += is_in ? (double)it->of[rank].shares[server][round] : 0;
    at->sets[round] |= (uint64_t)is_in << rank;
  }
  lcomm_quorum_close(&at->lanes[lane]);
  at->closed++;
}

/* Lanes in any order, as a server looks at them. */
static void close_rounds(world *it, int server) {
  const lcomm_stale_rule *rule = &it->closes.stale;
  piece *at = &it->pieces[server];
  unsigned count = lcomm_stale_lanes(rule);
  unsigned from = (unsigned)(draw_next(&it->random) * count);
  for (unsigned i = 0; i < count; i++) {
    unsigned lane = (from + i) % count;
    if (lcomm_stale_is_next(rule, at->views, lane) &&
        lcomm_stale_may_close(rule, at->views, lane, it->now_s)) {
      close_round(it, server, lane);
    }
  }
}

static bool is_here(const world *it, const worker *self) {
  bool here = self->is.taken < self->is.contributed;
  for (int server = 0; server < it->roles.ranks; server++) {
    const piece *at = &it->pieces[server];
    here &= at->count == 0 || (at->closed > self->is.taken && self->sent[server] > self->is.taken);
  }
  return here;
}

/* All pieces of a result; what one server did not use another one may have. */
static void take(world *it, int rank) {
  worker *self = &it->of[rank];
  uint64_t round = self->is.taken++;
  for (int server = 0; server < it->roles.ranks; server++) {
    piece *at = &it->pieces[server];
    if (at->count > 0) {
      bool is_used = at->sets[round] >> rank & 1;
      double share = (double)self->shares[server][round];
      self->sum[server] = 0.5 * self->sum[server] + at->results[round];
      *(is_used ? &self->used[server] : &self->kept[server]) += share;
    }
  }
}

/* A server answers who has contributed, when it likes; then its lane may go on. */
static void answer(world *it, int rank, int server) {
  piece *at = &it->pieces[server];
  for (unsigned lane = 0; lane < lcomm_stale_lanes(&it->closes.stale); lane++) {
    if (lcomm_quorum_may_answer(&at->lanes[lane], rank)) {
      lcomm_quorum_answered(&at->lanes[lane], rank);
    }
  }
}

static void move(world *it, int rank) {
  worker *self = &it->of[rank];
  if (self->is.contributed < ROUNDS && !self->waits && self->done_s <= it->now_s) {
    contribute(it, self);
    self->waits = true;
  }
  for (int server = 0; server < it->roles.ranks; server++) {
    if (it->pieces[server].count > 0) {
      arrive(it, rank, server);
      close_rounds(it, server);
      answer(it, rank, server);
    }
  }
  while (self->waits && is_here(it, self)) {
    take(it, rank);
  }
  if (self->waits && self->is.contributed < ROUNDS &&
      !lcomm_stale_must_wait(&it->closes.stale, &self->is)) {
    self->waits = false;
    self->done_s = it->now_s + STEP_S * draw_step(&it->random, rank);
  }
}

static bool is_over(const world *it) {
  bool over = true;
  for (int rank = 0; rank < it->roles.ranks; rank++) {
    over &= serves(it, rank) || it->of[rank].is.taken == ROUNDS;
  }
  return over;
}

/* Bounded: servers that block would never come to the end. */
static void run(world *it) {
  for (uint64_t tick = 0; !is_over(it); tick++) {
    assert_true(tick < 2000ull * ROUNDS);
    it->now_s += STEP_S / 2;
    for (int rank = 0; rank < it->roles.ranks; rank++) {
      if (!serves(it, rank)) {
        move(it, rank);
      }
    }
  }
}

static bool is_near(double a, double b) {
  return a > b - 1e-3 && a < b + 1e-3;
}

/* Of each piece: what a worker brought is in results, or kept; all workers took the same in the
 * same order. Returns how many contributions came back. */
static uint64_t check(const world *it) {
  uint64_t returned = 0;
  int first = 0;
  while (serves(it, first)) {
    first++;
  }
  for (int server = 0; server < it->roles.ranks; server++) {
    const piece *at = &it->pieces[server];
    double used = 0, results = 0;
    for (int rank = 0; rank < it->roles.ranks && at->count > 0; rank++) {
      const worker *self = &it->of[rank];
      double brought = 0;
      for (int round = 0; round < ROUNDS; round++) {
        brought += (double)self->brought[round];
        returned += !serves(it, rank) && !(at->sets[round] >> rank & 1);
      }
      used += self->used[server];
      assert_true(is_near(self->used[server] + self->kept[server], brought));
      assert_true(serves(it, rank) || is_near(self->sum[server], it->of[first].sum[server]));
    }
    for (int round = 0; round < ROUNDS; round++) {
      results += at->results[round];
    }
    assert_true(is_near(results, used));
  }
  return returned;
}

static const int sizes[] = {2, 3, 5, 9, 16, 33, 64};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* Returns how many contributions came back, in all worlds. */
static uint64_t run_all(closing closes) {
  static world it;
  uint64_t returned = 0;
  for (int i = 0; i < SIZES; i++) {
    for (int servers = 1; servers <= SERVERS_MOST; servers *= 2) {
      if (servers < sizes[i] - closes.spare) {
        begin(&it, sizes[i], servers, closes);
        run(&it);
        returned += check(&it);
        end(&it);
      }
    }
  }
  return returned;
}

static void where_all_workers_are_waited_for_every_element_is_used_at_once(void **state) {
  (void)state;
  assert_true(run_all((closing){0}) == 0);
}

static void with_a_quorum_every_element_is_used_now_or_later(void **state) {
  (void)state;
  assert_true(run_all((closing){.spare = 1}) > 0);
  assert_true(run_all((closing){.spare = 3}) > 0);
}

static void with_stale_steps_every_element_is_used_once_in_the_order_of_steps(void **state) {
  (void)state;
  for (unsigned steps = 1; steps < LANES_MOST; steps++) {
    assert_true(run_all((closing){.stale = {.steps = steps}}) == 0);
  }
}

static void what_is_too_late_is_used_later(void **state) {
  (void)state;
  for (unsigned steps = 1; steps < LANES_MOST; steps++) {
    assert_true(run_all((closing){.stale = {.steps = steps, .drops = true}}) > 0);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(where_all_workers_are_waited_for_every_element_is_used_at_once),
    cmocka_unit_test(with_a_quorum_every_element_is_used_now_or_later),
    cmocka_unit_test(with_stale_steps_every_element_is_used_once_in_the_order_of_steps),
    cmocka_unit_test(what_is_too_late_is_used_later),
};
RUN_TESTS(tests)

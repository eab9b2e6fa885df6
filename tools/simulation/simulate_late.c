/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_late.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libcomm/shards/shard_header.h"
#include "libcomm/shards/staleness.h"

/* ---------------------------------------------------------------- one rank */

typedef struct runner {
  lcomm_stale_rank is;
  bool computes; /* or brings zeros, until then; else waits, since then */
  double at_s;
  uint64_t skips; /* steps for which it computes nothing */
  double sent_s[SIMULATE_LATE_STEPS];
} runner;

typedef struct world {
  const simulate_late_case *of;
  lcomm_stale_rule rule;
  unsigned lane_count;
  lcomm_quorum *lanes;
  lcomm_quorum **views;
  runner *ranks;
  int workers;
  double ready_s[SIMULATE_LATE_STEPS]; /* of closed rounds: when a result is there, for who waits */
  uint64_t closed;                     /* rounds, all before the next one */
  uint64_t computed, age_sum, age_most, used;
} world;

static bool serves(const simulate_late_case *of, int rank) {
  return of->apart && lcomm_quorum_mask_has(of->apart, rank);
}

/* 0 to 1, the same for a rank and step under every rule. */
static double chance(int rank, uint64_t step, size_t word) {
  uint64_t x = (uint64_t)rank * 0xbf58476d1ce4e5b9u + step * 0x9e3779b97f4a7c15u + word;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return (double)((x ^ x >> 31) >> 11) / (double)(1ull << 53);
}

static double compute_s(const world *it, int rank, uint64_t step) {
  double factor = 1, pauses_s = 0;
  for (size_t i = 0; i < it->of->late_count; i++) {
    const simulate_lateness *late = &it->of->late[i];
    if (late->rank < 0 || late->rank == rank) {
      factor *= late->factor;
      pauses_s += chance(rank, step, i) < late->share ? late->pause_s : 0;
    }
  }
  return factor * it->of->compute_s + pauses_s;
}

static void begin_step(world *it, int rank, double now_s) {
  runner *self = &it->ranks[rank];
  bool skips = self->skips > 0;
  self->skips -= skips;
  self->computes = true;
  self->at_s = now_s + (skips ? 0 : compute_s(it, rank, self->is.contributed));
  it->computed += !skips;
}

static lcomm_quorum *lane_of(const world *it, uint64_t round) {
  return it->views[lcomm_stale_lane(&it->rule, round)];
}

static void contribute(world *it, int rank, double now_s) {
  runner *self = &it->ranks[rank];
  uint64_t round = self->is.contributed, age = lcomm_stale_age(&self->is);
  lcomm_quorum_verdict verdict = lcomm_quorum_contribute(lane_of(it, round), rank, now_s);
  it->used += verdict == LCOMM_QUORUM_COUNTS;
  it->age_sum += age;
  it->age_most = age > it->age_most ? age : it->age_most;
  self->sent_s[round] = now_s;
  self->is.contributed++;
  self->computes = false;
  self->at_s = now_s;
}

/* When the oldest result that a rank waits for is there; INFINITY: nobody knows. */
static double result_s(const world *it, const runner *self) {
  uint64_t round = self->is.taken;
  if (round == self->is.contributed || round >= it->closed) {
    return INFINITY;
  }
  return fmax(it->ready_s[round], self->sent_s[round] + it->of->exchange_s);
}

/* As lcomm_behind() would say: with a quorum the round that is open is one of them. */
static void look_behind(world *it, runner *self) {
  bool is_behind = it->closed > self->is.contributed;
  uint64_t behind = is_behind ? it->closed - self->is.contributed : 0;
  self->skips = behind + (is_behind && it->rule.steps == 0);
}

/* A waiting rank takes what is there, and goes on if it may. */
static void go_on(world *it, int rank, double now_s) {
  runner *self = &it->ranks[rank];
  bool has_taken = false;
  while (result_s(it, self) <= now_s) {
    lcomm_quorum_answered(lane_of(it, self->is.taken), rank);
    self->is.taken++;
    has_taken = true;
  }
  double late_s = it->of->policy.late_ms / 1000.0;
  bool has_all = self->is.taken == self->is.contributed;
  bool may = has_all || (it->rule.steps > 0 && now_s >= self->at_s + late_s &&
                         !lcomm_stale_must_wait(&it->rule, &self->is));
  if (has_taken && self->skips == 0) {
    look_behind(it, self);
  }
  if (may && self->is.contributed < SIMULATE_LATE_STEPS) {
    begin_step(it, rank, now_s);
  }
}

/* ----------------------------------------------------------------- the whole */

static void close_next(world *it, double now_s) {
  double before_s = it->closed > 0 ? it->ready_s[it->closed - 1] : 0;
  lcomm_quorum_close(lane_of(it, it->closed));
  it->ready_s[it->closed++] = fmax(now_s + it->of->exchange_s, before_s + it->of->wire_s);
}

static void close_rounds(world *it, double now_s) {
  while (
      it->closed < SIMULATE_LATE_STEPS &&
      lcomm_stale_may_close(&it->rule, it->views, lcomm_stale_lane(&it->rule, it->closed), now_s)) {
    close_next(it, now_s);
  }
}

/* When something happens to a rank, if nothing happens to others before. */
static double next_of(const world *it, const runner *self) {
  if (self->computes) {
    return self->at_s;
  }
  if (self->is.contributed == 0) {
    return INFINITY; /* a server */
  }
  double at_s = result_s(it, self), goes_on_s = self->at_s + it->of->policy.late_ms / 1000.0;
  bool may_go_on = it->rule.steps > 0 && !lcomm_stale_must_wait(&it->rule, &self->is) &&
                   self->is.contributed < SIMULATE_LATE_STEPS;
  return may_go_on && goes_on_s < at_s ? goes_on_s : at_s;
}

static double next_s(const world *it) {
  double at_s = lcomm_quorum_due_s(lane_of(it, it->closed));
  at_s = at_s > 0 ? at_s : INFINITY;
  for (int rank = 0; rank < it->of->ranks; rank++) {
    at_s = fmin(at_s, next_of(it, &it->ranks[rank]));
  }
  return at_s;
}

static void run(world *it) {
  for (int rank = 0; rank < it->of->ranks; rank++) {
    if (!serves(it->of, rank)) {
      begin_step(it, rank, 0);
    }
  }
  while (it->closed < SIMULATE_LATE_STEPS) {
    double now_s = next_s(it);
    for (int rank = 0; rank < it->of->ranks; rank++) {
      runner *self = &it->ranks[rank];
      if (next_of(it, self) > now_s) {
        continue;
      }
      if (self->computes) {
        contribute(it, rank, now_s);
      } else {
        go_on(it, rank, now_s);
      }
    }
    close_rounds(it, now_s);
  }
}

static bool make(world *it) {
  const lcomm_quorum_policy *policy = &it->of->policy;
  int ranks = it->of->ranks;
  bool is_quorum = policy->ranks > 0 || policy->percent > 0;
  it->rule = (lcomm_stale_rule){.steps = policy->stale, .drops = policy->drops};
  it->lane_count = lcomm_stale_lanes(&it->rule);
  it->lanes = calloc(it->lane_count, sizeof *it->lanes);
  it->views = calloc(it->lane_count, sizeof *it->views);
  it->ranks = calloc((size_t)ranks, sizeof *it->ranks);
  lcomm_quorum_rule rule = lcomm_stale_quorum(&it->rule, ranks, it->of->apart, LCOMM_SHARD_KEPT);
  if (is_quorum) {
    rule = (lcomm_quorum_rule){.ranks = ranks,
                               .needed = lcomm_policy_quorum(policy, it->workers),
                               .late_s = policy->late_ms / 1000.0,
                               .kept = LCOMM_SHARD_KEPT,
                               .apart = it->of->apart};
  }
  bool whole = it->lanes && it->views && it->ranks;
  for (unsigned i = 0; whole && i < it->lane_count; i++) {
    it->views[i] = &it->lanes[i];
    whole = lcomm_quorum_make(&it->lanes[i], &rule);
  }
  return whole;
}

static void release(world *it) {
  for (unsigned i = 0; it->lanes && i < it->lane_count; i++) {
    lcomm_quorum_free(&it->lanes[i]);
  }
  free(it->lanes);
  free(it->views);
  free(it->ranks);
}

static simulate_late_result result_of(const world *it) {
  double all = (double)SIMULATE_LATE_STEPS * it->workers, made = 0;
  for (int rank = 0; rank < it->of->ranks; rank++) {
    made += (double)it->ranks[rank].is.contributed;
  }
  return (simulate_late_result){.step_s =
                                    it->ready_s[SIMULATE_LATE_STEPS - 1] / SIMULATE_LATE_STEPS,
                                .computed = fmin(1, (double)it->computed / all),
                                .used = (double)it->used / all,
                                .age = made > 0 ? (double)it->age_sum / made : 0,
                                .age_most = it->age_most};
}

static int workers_of(const simulate_late_case *of) {
  return of->ranks - (of->apart ? lcomm_quorum_mask_count(of->apart, of->ranks) : 0);
}

bool simulate_late_run(const simulate_late_case *of, simulate_late_result *result, char *why) {
  int workers = workers_of(of);
  bool is_quorum = of->policy.ranks > 0 || of->policy.percent > 0;
  if (of->ranks > SIMULATE_LATE_RANKS_MAX) {
    snprintf(why, SIMULATE_LATE_WHY_MAX, "late ranks are simulated among up to %d",
             SIMULATE_LATE_RANKS_MAX);
    return false;
  }
  if (is_quorum && lcomm_policy_quorum(&of->policy, workers) > workers) {
    snprintf(why, SIMULATE_LATE_WHY_MAX, "the quorum needs more %s than the %d that there are",
             of->apart ? "workers" : "ranks", workers);
    return false;
  }
  world *it = calloc(1, sizeof *it);
  bool whole = it != NULL;
  if (whole) {
    it->of = of;
    it->workers = workers;
    whole = make(it);
  }
  if (whole) {
    run(it);
    *result = result_of(it);
  } else {
    snprintf(why, SIMULATE_LATE_WHY_MAX, "out of memory");
  }
  if (it) {
    release(it);
  }
  free(it);
  return whole;
}

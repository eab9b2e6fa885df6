/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Calls with residuals when ranks leave and join: what all residuals keep stays, and is shared out
 * among those that are there. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/support/unit_tests.h"
#include "tests/tensor/elastic_calls.h"

enum { WARM = 4, AFTERWARDS = 5 };

static int founders;
static const char *policy;
static bool checks;

/* What all ranks keep of each residual; of rank 0, so that newcomers know it. */
static double kept[LAYERS][WIDEST];

static bool sum_kept(calls *c) {
  bool good = true;
  for (int k = 0; good && k < LAYERS; k++) {
    for (uint64_t i = 0; i < c->layers[k].count; i++) {
      kept[k][i] = (double)c->layers[k].now[i];
    }
    good = lcomm_allreduce(c->comm, kept[k], kept[k], c->layers[k].count, LCOMM_FLOAT64,
                           LCOMM_SUM) == LCOMM_OK;
  }
  return good || wrong(c, "summing what ranks keep");
}

/* Of averages it weighs by the ranks. Rank 0 brings it into the account. */
static bool conserves_change(calls *c, int before) {
  static double held[WIDEST];
  for (int k = 0; k < LAYERS; k++) {
    layer *l = &c->layers[k];
    double weight = l->op == LCOMM_AVG ? (double)lcomm_size(c->comm) / before : 1;
    for (uint64_t i = 0; i < l->count; i++) {
      held[i] = lcomm_rank(c->comm) == 0 ? weight * kept[k][i] : 0;
    }
    if (make_call(c, k) != LCOMM_OK || (checks && !conserves_call(c, k, held))) {
      return wrong(c, "the first call after the change");
    }
  }
  return true;
}

/* How many calls were made, and by how many ranks. */
static bool agree_on_calls(calls *c, int *before) {
  int32_t facts[] = {c->layers[0].made, *before};
  bool good = lcomm_broadcast(c->comm, facts, 2, LCOMM_INT32, 0) == LCOMM_OK;
  for (int k = 0; k < LAYERS; k++) {
    c->layers[k].made = facts[0];
  }
  *before = facts[1];
  return good || wrong(c, "telling newcomers");
}

static bool counts_calls(calls *c) {
  uint64_t made = 0;
  bool good = true;
  for (int k = 0; good && k < LAYERS; k++) {
    good = lcomm_residual_calls(c->layers[k].residual, &made) == LCOMM_OK &&
           made == (uint64_t)c->layers[k].made;
  }
  return good || wrong(c, "the number of calls");
}

static bool call_on(calls *c, int before) {
  bool good = agree_on_calls(c, &before) && conserves_change(c, before) && counts_calls(c);
  int until = c->layers[LAYERS - 1].made + AFTERWARDS;
  for (int made = c->layers[LAYERS - 1].made; good && made < until; made++) {
    good = make_calls(c, made + 1, checks);
  }
  return good && is_equal_everywhere(c);
}

/* Calls until all newcomers wait at once. A barrier tells who does, and who leaves. */
static bool work_until_they_come(calls *c, const crew *all) {
  lcomm_changes changes = {0};
  int newcomers = all->size - founders, leaving = founders + newcomers - count_survivors(all);
  bool good = true;
  while (good && (c->layers[0].made < WARM || changes.waiting < newcomers)) {
    if (c->layers[0].made == WARM - 1 && is_victim(c->seat)) {
      good = lcomm_leave(c->comm) == LCOMM_OK;
    }
    good = good && make_calls(c, c->layers[0].made + 1, checks) &&
           lcomm_barrier(c->comm) == LCOMM_OK && lcomm_changes_get(c->comm, &changes) == LCOMM_OK;
  }
  good = good && changes.leaving == leaving && changes.leaves == is_victim(c->seat);
  return good || wrong(c, "who wants to leave and to join");
}

/* With others; false, without a communicator, on a rank that has left. */
static bool go_on(calls *c) {
  lcomm_comm *next = NULL;
  if (lcomm_regroup(c->comm, &next) != LCOMM_OK) {
    return wrong(c, "lcomm_regroup");
  }
  lcomm_destroy(c->comm);
  c->comm = next;
  return next != NULL;
}

static bool found(calls *c, const crew *all, int rank, report *mine) {
  crew first = *all;
  first.size = founders;
  if (!begin_calls(c, &first, rank, policy, mine) || !work_until_they_come(c, all) ||
      !sum_kept(c)) {
    return false;
  }
  return is_victim(rank) ? !go_on(c) && !c->comm : go_on(c) && call_on(c, founders);
}

static bool come(calls *c, const crew *all, int rank, report *mine) {
  *c = (calls){.seat = rank, .mine = mine, .layers = elastic_memory_get(LAYERS * sizeof(layer))};
  c->comm = join_elastic(all, mine);
  return c->comm && make_residuals(c, true) && call_on(c, 0);
}

static void call_with_newcomers(const crew *all, int rank, report *mine) {
  calls c;
  bool good = rank < founders ? found(&c, all, rank, mine) : come(&c, all, rank, mine);
  if (good && c.comm && lcomm_size(c.comm) != count_survivors(all)) {
    good = wrong(&c, "the number of ranks");
  }
  mine->good = good;
  mine->status = LCOMM_OK;
  end_calls(&c);
}

static void change(int first, int newcomers, unsigned those_leave) {
  crew c = new_crew(first + newcomers, call_with_newcomers);
  founders = first;
  victims = those_leave;
  run_survivors(&c, 0);
}

static void with_policy(const char *words, bool are_conserved) {
  policy = words;
  checks = are_conserved;
  change(4, 0, 1 << 0);
  change(4, 0, 3 << 2);
  change(4, 0, 7 << 0);
  change(3, 1, 0);
  change(2, 2, 0);
  change(4, 1, 1 << 1);
}

static void exact_calls_go_on(void **state) {
  (void)state;
  with_policy("min=0", true);
}

static void int8_loses_nothing(void **state) {
  (void)state;
  with_policy("net=int8+ef min=0", true);
}

static void topk_loses_nothing(void **state) {
  (void)state;
  with_policy("net=topk:0.05+ef min=0", true);
}

static void momentum_goes_on(void **state) {
  (void)state;
  with_policy("net=topk:0.05+ef momentum=0.5 warmup=2 min=0", false);
}

/* A newcomer dies before the first call: nothing is lost with it. The founders' residuals have
 * other numbers than those of newcomers. */
static void lose_before_the_first_call(const crew *all, int rank, report *mine) {
  calls c = {.mine = mine};
  lcomm_residual *first = NULL;
  bool good = true;
  if (rank < founders) {
    crew early = *all;
    early.size = founders;
    c = (calls){.seat = rank, .mine = mine, .layers = elastic_memory_get(LAYERS * sizeof(layer))};
    c.comm = create_elastic(&early, rank, policy, mine);
    good = c.comm && lcomm_residual_create(c.comm, 10, LCOMM_SUM, &first) == LCOMM_OK &&
           make_residuals(&c, false) && lcomm_residual_destroy(first) == LCOMM_OK &&
           work_until_they_come(&c, all) && sum_kept(&c) && go_on(&c);
  } else {
    c = (calls){.seat = rank, .mine = mine, .layers = elastic_memory_get(LAYERS * sizeof(layer))};
    c.comm = join_elastic(all, mine);
    good = c.comm && make_residuals(&c, true);
  }
  good = good && lcomm_barrier(c.comm) == LCOMM_OK;
  if (rank == all->size - 1) {
    raise(SIGKILL);
  }
  sum_until_lost(c.comm, 1000, mine);
  lcomm_comm *next = good ? shrink_to_next(c.comm, mine) : NULL;
  c.comm = next;
  mine->good = next && call_on(&c, founders);
  mine->status = LCOMM_OK;
  end_calls(&c);
}

static void nothing_is_lost_with_a_newcomer(void **state) {
  (void)state;
  crew c = new_crew(5, lose_before_the_first_call);
  founders = 3;
  policy = "net=int8+ef min=0";
  checks = true;
  victims = 0;
  run_survivors(&c, 1 << 4);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(exact_calls_go_on),
    cmocka_unit_test(int8_loses_nothing),
    cmocka_unit_test(topk_loses_nothing),
    cmocka_unit_test(momentum_goes_on),
    cmocka_unit_test(nothing_is_lost_with_a_newcomer),
};
RUN_TESTS(tests)

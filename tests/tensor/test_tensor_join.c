/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Tensors when newcomers join: what error feedback remembers is shared out with them, and all ranks
 * have the same weights from then on. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libcomm/engine/entry.h"
#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/support/unit_tests.h"
#include "tests/tensor/elastic_model.h"
#include "tests/tensor/elastic_regroup.h"

enum { WARM = 4, AFTERWARDS = 5 };

static int founders;
static const char *policy;
static bool checks;
static int frozen = -1;

/* Group the tensors as the next step does, so that what was held is in place. */
static bool take_shares(training *t) {
  lcomm_status status = lcomm_enter(t->comm);
  if (status == LCOMM_OK) {
    status = lcomm_tensors_plan(t->comm);
    lcomm_exit(t->comm);
  }
  return status == LCOMM_OK || wrong(t, "grouping the tensors anew");
}

static bool train_on(training *t) {
  bool good = keep_residuals(t);
  int until = t->step + AFTERWARDS;
  while (good && t->step < until) {
    good = make_step(t, checks);
  }
  return good && is_equal_everywhere(t);
}

/* Steps until all newcomers wait at once; then they join, and victims leave. */
static bool work_until_they_join(training *t, int newcomers) {
  lcomm_changes changes = {0};
  bool good = true;
  while (good && (t->step < WARM || changes.waiting < newcomers)) {
    if (frozen >= 0 && t->step == WARM - 1) {
      (void)lcomm_tensor_freeze(t->comm, t->tensors[frozen]);
    }
    good = make_step(t, checks) && lcomm_changes_get(t->comm, &changes) == LCOMM_OK;
  }
  if (good && is_victim(t->seat)) {
    good = lcomm_leave(t->comm) == LCOMM_OK;
  }
  return good;
}

static bool found(training *t, const crew *c, int rank, report *mine) {
  memory_sums before = {0}, after = {0};
  crew first = *c;
  first.size = founders;
  if (!begin_training(t, &first, rank, policy, mine) ||
      !work_until_they_join(t, c->size - founders) || !sum_memory(t, &before)) {
    return false;
  }
  bool stays = regroup(t);
  if (is_victim(rank)) {
    free(before.values);
    return !t->comm;
  }
  return stays && share_weights(t) && take_shares(t) && sum_memory(t, &after) &&
         is_conserved(t, &before, &after) && train_on(t);
}

static bool come(training *t, const crew *c, int rank, report *mine) {
  memory_sums after = {0};
  bool good = join_training(t, c, rank, mine);
  if (good && frozen >= 0) {
    good = lcomm_tensor_freeze(t->comm, t->tensors[frozen]) == LCOMM_OK;
  }
  good = good && share_weights(t) && take_shares(t) && sum_memory(t, &after);
  free(after.values);
  return good && train_on(t);
}

static void train_with_newcomers(const crew *c, int rank, report *mine) {
  training t = {.mine = mine};
  bool good = rank < founders ? found(&t, c, rank, mine) : come(&t, c, rank, mine);
  if (good && t.comm && lcomm_size(t.comm) != count_survivors(c)) {
    good = wrong(&t, "the number of ranks");
  }
  mine->good = good;
  mine->status = LCOMM_OK;
  end_training(&t);
}

static void join(int first, int newcomers, unsigned those_leave) {
  crew c = new_crew(first + newcomers, train_with_newcomers);
  founders = first;
  victims = those_leave;
  run_survivors(&c, 0);
}

static void with_policy(const char *words, bool are_conserved) {
  policy = words;
  checks = are_conserved;
  join(3, 1, 0);
  join(2, 2, 0);
  join(4, 1, 1 << 1);
}

static void exact_sums_go_on(void **state) {
  (void)state;
  with_policy("min=1K bucket=64K", true);
}

static void int8_loses_nothing(void **state) {
  (void)state;
  with_policy("net=int8+ef min=1K bucket=64K", true);
}

static void topk_loses_nothing(void **state) {
  (void)state;
  with_policy("net=topk:0.05+ef min=1K bucket=64K", true);
}

static void momentum_loses_nothing(void **state) {
  (void)state;
  with_policy("net=topk:0.05+ef momentum=0.5 warmup=2 min=1K bucket=64K", false);
}

static void low_rank_loses_nothing(void **state) {
  (void)state;
  with_policy("net=lowrank:2 min=1K bucket=64K", true);
}

static void chains_of_codecs_lose_nothing(void **state) {
  (void)state;
  with_policy("net=int8+ef+zstd min=1K bucket=64K check=xxhash", true);
  with_policy("net=topk:0.05,values=int8+ef+zstd node=bf16 min=1K bucket=64K", false);
}

static void frozen_tensors_stay_frozen(void **state) {
  (void)state;
  policy = "net=int8+ef min=1K bucket=64K";
  checks = true;
  frozen = 2;
  join(3, 1, 0);
  frozen = -1;
}

/* A rank dies when newcomers have joined, and the step that shares out has not been made. */
static void lose_before_the_step(const crew *c, int rank, report *mine) {
  training t = {.mine = mine};
  memory_sums before = {0}, after = {0};
  crew first = *c;
  first.size = founders;
  bool good = rank < founders
                  ? begin_training(&t, &first, rank, policy, mine) && work_until_they_join(&t, 1) &&
                        sum_memory(&t, &before) && regroup(&t)
                  : join_training(&t, c, rank, mine);
  good = good && share_weights(&t);
  if (good && rank == founders) {
    raise(SIGKILL);
  }
  sum_until_lost(t.comm, 1000, mine);
  good = good && go_on_without(&t) && take_shares(&t) && sum_memory(&t, &after) &&
         is_conserved(&t, &before, &after) && train_on(&t);
  mine->good = good && lcomm_size(t.comm) == founders;
  mine->status = LCOMM_OK;
  end_training(&t);
}

static void what_is_held_is_not_lost_with_a_newcomer(void **state) {
  (void)state;
  crew c = new_crew(4, lose_before_the_step);
  founders = 3;
  policy = "net=int8+ef min=1K bucket=64K";
  checks = true;
  victims = 0;
  run_survivors(&c, 1 << 3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(exact_sums_go_on),
    cmocka_unit_test(int8_loses_nothing),
    cmocka_unit_test(topk_loses_nothing),
    cmocka_unit_test(momentum_loses_nothing),
    cmocka_unit_test(low_rank_loses_nothing),
    cmocka_unit_test(chains_of_codecs_lose_nothing),
    cmocka_unit_test(frozen_tensors_stay_frozen),
    cmocka_unit_test(what_is_held_is_not_lost_with_a_newcomer),
};
RUN_TESTS(tests)

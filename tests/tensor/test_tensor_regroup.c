/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Tensors when ranks leave in order: what error feedback remembers of all ranks stays. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/support/unit_tests.h"
#include "tests/tensor/elastic_model.h"
#include "tests/tensor/elastic_regroup.h"

enum { LEAVE_AT = 5, STEPS = LEAVE_AT + 5 };

static const char *policy;
static bool checks;

/* All know at the end of a step who leaves. */
static bool all_know(training *t) {
  lcomm_changes changes;
  int leaving = 0;
  for (int rank = 0; rank < lcomm_size(t->comm); rank++) {
    leaving += is_victim(rank);
  }
  bool good = lcomm_changes_get(t->comm, &changes) == LCOMM_OK && changes.leaving == leaving &&
              changes.leaves == is_victim(t->seat) && changes.waiting == 0;
  return good || wrong(t, "not all know who leaves");
}

static bool train_until_they_leave(training *t) {
  bool good = true;
  while (good && t->step < LEAVE_AT) {
    if (t->step == LEAVE_AT - 1 && is_victim(t->seat)) {
      good = lcomm_leave(t->comm) == LCOMM_OK;
    }
    good = good && make_step(t, checks);
  }
  return good && all_know(t);
}

static bool is_at_the_same_step(training *t) {
  lcomm_regrouped told;
  lcomm_shrunk shrunk;
  bool good = lcomm_regrouped_get(t->comm, &told) == LCOMM_OK && told.steps == (uint64_t)t->step &&
              told.lost == 0 && lcomm_shrunk_get(t->comm, &shrunk) == LCOMM_OK &&
              shrunk.lost_residual < 1e-9 && shrunk.lost_norm == 0;
  return good || wrong(t, "what lcomm_regrouped_get says");
}

static void train_and_leave(const crew *c, int rank, report *mine) {
  training t;
  memory_sums before = {0}, after = {0};
  bool good = begin_training(&t, c, rank, policy, mine) && train_until_they_leave(&t) &&
              sum_memory(&t, &before);
  bool goes_on = good && regroup(&t);
  if (is_victim(rank)) {
    free(before.values);
    mine->good = good && !t.comm;
  } else {
    good = goes_on && is_at_the_same_step(&t) && sum_memory(&t, &after) &&
           is_conserved(&t, &before, &after) && keep_residuals(&t);
    while (good && t.step < STEPS) {
      good = make_step(&t, checks);
    }
    mine->good = good && is_equal_everywhere(&t) && lcomm_size(t.comm) == count_survivors(c);
  }
  mine->status = LCOMM_OK;
  end_training(&t);
}

static void leave(int size, unsigned those) {
  crew c = new_crew(size, train_and_leave);
  victims = those;
  run_survivors(&c, 0);
}

static void with_policy(const char *words, bool are_conserved) {
  policy = words;
  checks = are_conserved;
  leave(4, 1 << 0);
  leave(4, 1 << 2);
  leave(4, 3 << 2);
  leave(4, 7 << 0);
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

static void compressed_momentum_goes_on(void **state) {
  (void)state;
  with_policy("net=sign adam=onebit warmup=3 min=1K", false);
}

static void a_progress_thread_goes_on(void **state) {
  (void)state;
  setenv("LCOMM_PROGRESS", "thread", 1);
  policy = "net=int8+ef min=1K bucket=64K";
  checks = true;
  leave(4, 1 << 0);
  leave(4, 1 << 3);
  unsetenv("LCOMM_PROGRESS");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(exact_sums_go_on),          cmocka_unit_test(int8_loses_nothing),
    cmocka_unit_test(topk_loses_nothing),        cmocka_unit_test(momentum_loses_nothing),
    cmocka_unit_test(low_rank_loses_nothing),    cmocka_unit_test(compressed_momentum_goes_on),
    cmocka_unit_test(a_progress_thread_goes_on),
};
RUN_TESTS(tests)

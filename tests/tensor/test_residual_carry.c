/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Calls with residuals when ranks are lost: a call is finished or undone on all, and what residuals
 * keep goes on with those that live. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/support/unit_tests.h"
#include "tests/tensor/elastic_calls.h"

enum { LOST_AT = 5, STEPS = LOST_AT + 6 };

/* Where in step LOST_AT victims die. */
typedef enum place { BEFORE_IT, AFTER_A_CALL, IN_A_CALL, AFTER_IT, PLACES } place;

static const char *policy;
static place when;
static bool checks;

static void die_in_step(calls *c) {
  if (when == AFTER_A_CALL) {
    (void)make_call(c, 0);
  } else if (when == IN_A_CALL) {
    lcomm_request request = {0};
    make_gradient(c, 0);
    (void)lcomm_iallreduce_ef(c->layers[0].residual, c->layers[0].gradient, c->layers[0].result,
                              &request);
  } else if (when == AFTER_IT) {
    (void)make_calls(c, LOST_AT + 1, false);
  }
  raise(SIGKILL);
}

static void call_and_lose(const crew *all, int rank, report *mine) {
  calls c;
  bool good = begin_calls(&c, all, rank, policy, mine) && call_until(&c, LOST_AT, checks);
  if (good && is_victim(rank)) {
    (void)lcomm_barrier(c.comm); /* the others are there, too */
    die_in_step(&c);
  }
  good = good && lcomm_barrier(c.comm) == LCOMM_OK && make_calls_until_lost(&c);
  good =
      good && c.lost == all->size - count_survivors(all) && call_until(&c, STEPS + LOST_AT, checks);
  mine->status = LCOMM_OK;
  mine->good = good && is_equal_everywhere(&c);
  end_calls(&c);
}

static void lose(int size, unsigned lost) {
  crew c = new_crew(size, call_and_lose);
  victims = lost;
  run_survivors(&c, lost);
}

static void with_policy(const char *words, bool are_conserved) {
  policy = words;
  checks = are_conserved;
  for (when = BEFORE_IT; when < PLACES; when++) {
    lose(4, 1 << 3);
    lose(4, 1 << 0);
    lose(4, 3 << 2);
  }
}

static void exact_calls_go_on(void **state) {
  (void)state;
  with_policy("min=0", true);
}

static void residuals_of_int8_go_on(void **state) {
  (void)state;
  with_policy("net=int8+ef min=0", true);
}

static void residuals_of_topk_go_on(void **state) {
  (void)state;
  with_policy("net=topk:0.05+ef min=0", true);
}

static void momentum_of_calls_goes_on(void **state) {
  (void)state;
  with_policy("net=topk:0.05+ef momentum=0.5 warmup=2 min=0", false);
  with_policy("net=topk:0.05+ef momentum=0.5 warmup=6 min=0", false);
}

static void lose_in_a_call(const char *words, bool are_conserved) {
  policy = words;
  checks = are_conserved;
  when = IN_A_CALL;
  lose(4, 1 << 0);
  lose(5, 1 << 3);
}

static void other_policies_go_on(void **state) {
  (void)state;
  lose_in_a_call("net=int4+ef guard=2 min=0", false);
  lose_in_a_call("net=topk:0.05+ef clip=1000 nonfinite=discard min=0", false);
  lose_in_a_call("net=auto:int8 min=0", false);
}

static void one_rank_may_be_left(void **state) {
  (void)state;
  policy = "net=int8+ef min=0";
  checks = true;
  when = IN_A_CALL;
  lose(2, 1 << 0);
  lose(4, 7 << 1);
}

/* -------------------------------------------------------- finished or undone */

static int behind; /* has not finished the last call with the first residual */

/* The others have finished a call that one rank has not. */
static void finish_what_one_has_not(const crew *all, int rank, report *mine) {
  calls c;
  bool good = begin_calls(&c, all, rank, policy, mine) && call_until(&c, LOST_AT, checks);
  good = good && make_call(&c, 0) == LCOMM_OK && lcomm_barrier(c.comm) == LCOMM_OK;
  if (good && rank == behind) {
    good = lcomm_residual_undo(c.layers[0].residual);
  }
  if (rank == 2) {
    raise(SIGKILL);
  }
  sum_until_lost(c.comm, 1000, mine);
  good = good && go_on_without(&c);
  if (good && c.layers[0].made != LOST_AT + (behind < 0)) {
    good = wrong(&c, "a call is undone where one has not finished it, and else is not");
  }
  good = good && call_until(&c, STEPS, checks);
  mine->status = LCOMM_OK;
  mine->good = good && is_equal_everywhere(&c);
  end_calls(&c);
}

static void a_call_is_finished_on_all_or_undone_on_all(void **state) {
  (void)state;
  policy = "net=int8+ef min=0";
  checks = true;
  for (behind = -1; behind <= 1; behind++) {
    crew c = new_crew(4, finish_what_one_has_not);
    run_survivors(&c, 1 << 2);
  }
}

/* A request that nobody has waited for is the program's after the shrink as well. */
static void wait_afterwards(const crew *all, int rank, report *mine) {
  calls c;
  lcomm_comm *next = NULL;
  lcomm_request request = {0};
  bool good = begin_calls(&c, all, rank, policy, mine) && call_until(&c, LOST_AT, checks);
  if (rank == 2) {
    raise(SIGKILL);
  }
  make_gradient(&c, 0);
  (void)lcomm_iallreduce_ef(c.layers[0].residual, c.layers[0].gradient, c.layers[0].result,
                            &request);
  sum_until_lost(c.comm, 1000, mine);
  good = good && lcomm_shrink(c.comm, &next) == LCOMM_OK;
  good = good && lcomm_wait(c.comm, &request) != LCOMM_OK;
  lcomm_destroy(c.comm);
  c.comm = next;
  for (int k = 0; good && k < LAYERS; k++) {
    good = take_stock(&c, k, 3.0 / 4);
  }
  good = good && call_until(&c, STEPS, checks);
  mine->status = LCOMM_OK;
  mine->good = good && is_equal_everywhere(&c);
  end_calls(&c);
}

static void a_request_may_be_waited_for_afterwards(void **state) {
  (void)state;
  checks = true;
  static const char *const policies[] = {"net=int8+ef min=0",
                                         "net=topk:0.05+ef momentum=0.5 warmup=5 min=0"};
  for (int i = 0; i < 2; i++) {
    policy = policies[i];
    checks = i == 0;
    crew c = new_crew(4, wait_afterwards);
    run_survivors(&c, 1 << 2);
  }
}

/* One rank has destroyed a residual and made another one, of which the others do not know yet. */
static void differ_in_residuals(const crew *all, int rank, report *mine) {
  static float values[300];
  calls c;
  lcomm_residual *more = NULL;
  bool good = begin_calls(&c, all, rank, policy, mine) && call_until(&c, LOST_AT, checks);
  if (rank == 2) {
    raise(SIGKILL);
  }
  if (rank == 1) {
    good = good && lcomm_residual_create(c.comm, 300, LCOMM_SUM, &more) == LCOMM_OK;
  }
  sum_until_lost(c.comm, 1000, mine);
  good = good && go_on_without(&c);
  if (rank != 1) {
    good = good && lcomm_residual_create(c.comm, 300, LCOMM_SUM, &more) == LCOMM_OK;
  }
  good = good && call_until(&c, STEPS, checks) &&
         (lcomm_allreduce_ef(more, values, values) == LCOMM_OK || wrong(&c, "the new residual"));
  mine->status = LCOMM_OK;
  mine->good = good && is_equal_everywhere(&c);
  end_calls(&c);
}

static void a_residual_that_only_some_have_goes_over(void **state) {
  (void)state;
  policy = "net=int8+ef min=0";
  checks = true;
  crew c = new_crew(4, differ_in_residuals);
  run_survivors(&c, 1 << 2);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(exact_calls_go_on),
    cmocka_unit_test(residuals_of_int8_go_on),
    cmocka_unit_test(residuals_of_topk_go_on),
    cmocka_unit_test(momentum_of_calls_goes_on),
    cmocka_unit_test(other_policies_go_on),
    cmocka_unit_test(one_rank_may_be_left),
    cmocka_unit_test(a_call_is_finished_on_all_or_undone_on_all),
    cmocka_unit_test(a_request_may_be_waited_for_afterwards),
    cmocka_unit_test(a_residual_that_only_some_have_goes_over),
};
RUN_TESTS(tests)

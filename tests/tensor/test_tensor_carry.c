/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Tensors when ranks are lost: the step is finished or undone on all, and what error feedback
 * remembers goes on with those that live. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/support/unit_tests.h"
#include "tests/tensor/elastic_model.h"

enum { LOST_AT = 6, STEPS = LOST_AT + 21 };

/* Where in step LOST_AT victims die. */
typedef enum moment { BEFORE_IT, WHEN_READY, AFTER_A_BUCKET, AFTER_IT, MOMENTS } moment;

static const char *policy;
static moment when;
static bool checks;

static void die_in_step(training *t) {
  int done = 0;
  make_gradients(t);
  lcomm_status status = when == BEFORE_IT ? LCOMM_OK : report_ready(t);
  while (when == AFTER_A_BUCKET && status == LCOMM_OK && !done) {
    status = lcomm_tensor_test(t->comm, t->tensors[0], &done);
  }
  if (when == AFTER_IT) {
    (void)lcomm_tensors_wait(t->comm);
  }
  raise(SIGKILL);
}

static void train_and_lose(const crew *c, int rank, report *mine) {
  training t;
  bool good = begin_training(&t, c, rank, policy, mine);
  while (good && t.step < STEPS) {
    if (t.step == LOST_AT && is_victim(rank)) {
      die_in_step(&t);
    }
    good = make_step(&t, checks);
  }
  good = good && is_equal_everywhere(&t);
  if (good && lcomm_size(t.comm) != count_survivors(c)) {
    good = wrong(&t, "the number of ranks");
  }
  mine->status = LCOMM_OK;
  mine->good = good;
  end_training(&t);
}

static void lose(int size, unsigned lost) {
  crew c = new_crew(size, train_and_lose);
  victims = lost;
  run_survivors(&c, lost);
}

/* ------------------------------------------------------------------ policies */

static void with_policy(const char *words, bool are_conserved) {
  policy = words;
  checks = are_conserved;
  for (when = BEFORE_IT; when < MOMENTS; when++) {
    lose(4, 1 << 3);
    lose(4, 1 << 0);
    lose(4, 3 << 2);
  }
}

static void exact_sums_go_on(void **state) {
  (void)state;
  with_policy("min=1K bucket=64K", true);
}

static void error_feedback_of_int8_goes_on(void **state) {
  (void)state;
  with_policy("net=int8+ef min=1K bucket=64K", true);
}

static void error_feedback_of_topk_goes_on(void **state) {
  (void)state;
  with_policy("net=topk:0.05+ef min=1K bucket=64K", true);
}

static void momentum_goes_on(void **state) {
  (void)state;
  with_policy("net=topk:0.05+ef momentum=0.5 warmup=2 min=1K bucket=64K", false);
  with_policy("net=topk:0.05+ef momentum=0.5 warmup=6 min=1K bucket=64K", false);
}

static void lose_after_a_bucket(const char *words, bool are_conserved) {
  policy = words;
  checks = are_conserved;
  when = AFTER_A_BUCKET;
  lose(4, 1 << 0);
  lose(4, 1 << 3);
}

static void other_policies_go_on(void **state) {
  (void)state;
  lose_after_a_bucket("net=sign adam=onebit warmup=3 min=1K", false);
  lose_after_a_bucket("net=int4 guard=2 min=1K bucket=64K", true);
  lose_after_a_bucket("net=topk:0.05+ef clip=1000:global nonfinite=discard min=1K", false);
  lose_after_a_bucket("net=auto:int8 min=1K", false);
}

static void chains_of_codecs_go_on(void **state) {
  (void)state;
  lose_after_a_bucket("net=int8+ef+zstd min=1K bucket=64K check=xxhash", true);
  lose_after_a_bucket("net=topk:0.05,values=int8+ef+zstd node=bf16 min=1K bucket=64K", false);
}

static void low_rank_goes_on(void **state) {
  (void)state;
  with_policy("net=lowrank:2 min=1K bucket=64K", true);
}

static void a_progress_thread_goes_on(void **state) {
  (void)state;
  setenv("LCOMM_PROGRESS", "thread", 1);
  lose_after_a_bucket("net=int8+ef min=1K bucket=64K", true);
  unsetenv("LCOMM_PROGRESS");
}

static void the_others_of_a_node_go_on(void **state) {
  (void)state;
  policy = "net=int8+ef min=1K bucket=64K";
  checks = true;
  when = AFTER_A_BUCKET;
  lose(5, 1 << 1);
  lose(6, 1 << 1 | 1 << 5);
}

static void one_rank_may_be_left(void **state) {
  (void)state;
  policy = "net=int8+ef min=1K bucket=64K";
  checks = true;
  when = AFTER_A_BUCKET;
  lose(2, 1 << 0);
  lose(4, 7 << 1);
}

/* ------------------------------------------------------- finished or undone */

static bool behind_the_barrier;

/* One survivor is cut off in the barrier at the end of a step that the others have passed, or
 * behind it: it has the results, and nobody has told it so. */
static bool be_cut_off(training *t) {
  make_gradients(t);
  bool good = report_ready(t) == LCOMM_OK && lcomm_tensors_wait(t->comm) == LCOMM_OK;
  for (int k = 0; good && k < TENSORS; k++) { /* as the others do */
    good = conserves_step(t, k);
  }
  t->comm->tensors->complete = !behind_the_barrier;
  t->comm->tensors->untold = behind_the_barrier;
  t->comm->deferred.step -= !behind_the_barrier;
  t->comm->deferred.open = !behind_the_barrier;
  return good;
}

static void finish_what_others_have_finished(const crew *c, int rank, report *mine) {
  training t;
  bool good = begin_training(&t, c, rank, "net=int8+ef min=1K", mine);
  while (good && t.step < LOST_AT - (rank == 1)) {
    good = make_step(&t, true);
  }
  good = good && (rank != 1 || be_cut_off(&t));
  if (rank == 2) {
    raise(SIGKILL);
  }
  sum_until_lost(t.comm, 1000, mine);
  good = good && go_on_without(&t);
  if (good && (t.finished != (rank == 1) || t.step != LOST_AT)) {
    good = wrong(&t, "only the rank that was cut off has finished a step");
  }
  good = good && keep_residuals(&t);
  while (good && t.step < STEPS) {
    good = make_step(&t, true);
  }
  mine->good = good && is_equal_everywhere(&t);
  mine->status = LCOMM_OK;
  end_training(&t);
}

static void a_step_that_one_has_passed_is_finished(void **state) {
  (void)state;
  crew c = new_crew(4, finish_what_others_have_finished);
  behind_the_barrier = false;
  run_survivors(&c, 1 << 2);
  crew d = new_crew(4, finish_what_others_have_finished);
  behind_the_barrier = true;
  run_survivors(&d, 1 << 2);
}

/* Rank 3 has all results and dies before it says so: nobody may take the step for finished yet. */
static void leave_before_the_barrier(const crew *c, int rank, report *mine) {
  training t;
  bool good = begin_training(&t, c, rank, "net=int8+ef min=1K bucket=64K", mine);
  while (good && t.step < LOST_AT) {
    good = make_step(&t, true);
  }
  make_gradients(&t);
  good = good && report_ready(&t) == LCOMM_OK;
  for (int k = 0; rank == 3 && good && k < TENSORS; k++) {
    int done = 0;
    while (!done && lcomm_tensor_test(t.comm, t.tensors[k], &done) == LCOMM_OK) {
    }
  }
  if (rank == 3) {
    raise(SIGKILL);
  }
  if (good && lcomm_tensors_wait(t.comm) == LCOMM_OK) {
    good = wrong(&t, "a step is over that a rank may not have finished");
  }
  good = good && go_on_without(&t) && keep_residuals(&t);
  while (good && t.step < STEPS) {
    good = make_step(&t, true);
  }
  mine->good = good && is_equal_everywhere(&t);
  mine->status = LCOMM_OK;
  end_training(&t);
}

static void no_step_is_over_before_all_have_its_results(void **state) {
  (void)state;
  crew c = new_crew(4, leave_before_the_barrier);
  run_survivors(&c, 1 << 3);
}

static void all_stand_at_one_step(void **state) {
  (void)state;
  static const struct {
    lcomm_standing at[3];
    bool possible;
    uint64_t steps;
  } cases[] = {
      {{{.steps = 4}, {.steps = 4}, {.steps = 4}}, true, 4},
      {{{.steps = 4, .complete = true}, {.steps = 4}, {.steps = 4}}, true, 4},
      {{{.steps = 4, .complete = true}, {.steps = 5}, {.steps = 5}}, true, 5},
      {{{.steps = 4, .complete = true},
        {.steps = 4, .complete = true},
        {.steps = 4, .complete = true}},
       true,
       5},
      {{{.steps = 4}, {.steps = 5}, {.steps = 5}}, false, 0},
      {{{.steps = 4, .complete = true}, {.steps = 6}, {.steps = 5}}, false, 0},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof *cases; i++) {
    uint64_t steps = 0;
    assert_int_equal(lcomm_shrink_decide(cases[i].at, 3, &steps), cases[i].possible);
    if (cases[i].possible) {
      assert_int_equal(steps, cases[i].steps);
    }
  }
}

/* ------------------------------------------------------------ what is told */

static double norm_of_kept(const training *t) {
  double squares = 0;
  for (int k = 0; k < TENSORS; k++) {
    for (uint64_t i = 0; i < tensor_counts[k]; i++) {
      squares += (double)t->kept[k][i] * t->kept[k][i];
    }
  }
  return sqrt(squares);
}

/* All keep as many values, of one distribution. */
static void tell_what_was_lost(const crew *c, int rank, report *mine) {
  training t;
  double norm = 0;
  bool good = begin_training(&t, c, rank, "net=int8+ef min=1K", mine);
  while (good && t.lost == 0) {
    norm = norm_of_kept(&t);
    if (t.step == 2 && rank == 3) {
      raise(SIGKILL);
    }
    good = make_step(&t, true);
  }
  if (good && fabs(t.lost_residual - 0.25) > 0.01) { /* two nodes, each of two halves */
    good = wrong(&t, "a quarter of the residuals is lost");
  }
  if (good && (t.lost_norm < norm / 1.2 || t.lost_norm > norm * 1.2)) {
    good = wrong(&t, "it is as large as a quarter of another rank");
  }
  mine->good = good;
  mine->status = LCOMM_OK;
  end_training(&t);
}

static void the_share_and_the_norm_of_what_is_lost_are_told(void **state) {
  (void)state;
  crew c = new_crew(4, tell_what_was_lost);
  run_survivors(&c, 1 << 3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(exact_sums_go_on),
    cmocka_unit_test(error_feedback_of_int8_goes_on),
    cmocka_unit_test(error_feedback_of_topk_goes_on),
    cmocka_unit_test(momentum_goes_on),
    cmocka_unit_test(other_policies_go_on),
    cmocka_unit_test(chains_of_codecs_go_on),
    cmocka_unit_test(low_rank_goes_on),
    cmocka_unit_test(a_progress_thread_goes_on),
    cmocka_unit_test(the_others_of_a_node_go_on),
    cmocka_unit_test(one_rank_may_be_left),
    cmocka_unit_test(a_step_that_one_has_passed_is_finished),
    cmocka_unit_test(no_step_is_over_before_all_have_its_results),
    cmocka_unit_test(all_stand_at_one_step),
    cmocka_unit_test(the_share_and_the_norm_of_what_is_lost_are_told),
};
RUN_TESTS(tests)

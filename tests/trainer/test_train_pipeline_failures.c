/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A rank of a pipeline dies in the middle of a training: all others end, each with one sentence,
 * whichever of their communicators they wait in. Numbers that are none are not stepped by. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/forked_comm.h"
#include "tests/support/unit_tests.h"
#include "trainer/train_report.h"

void openblas_set_num_threads(int threads);

enum { STEPS = 3 };

static options options_of(forked *self) {
  options made;
  failure why = {0};
  char words[][24] = {"train",     "--model=gpt-nano", "--data=builtin", "--images=64",
                      "--batch=1", "--accumulate=4",   "--pipeline=2"};
  enum { COUNT = sizeof words / sizeof words[0] };
  char *arguments[COUNT + 1] = {0};
  for (int i = 0; i < COUNT; i++) {
    arguments[i] = words[i];
  }
  forked_require(self, options_parse(COUNT, arguments, &made, &why) == 0, "%s", why.text);
  made.model = "gpt-nano";
  made.data = "builtin";
  return made;
}

static void set_up(forked *self, const options *chosen, training *made) {
  failure why = {0};
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = "pipe=fp8e4m3";
  config.transport = "shm";
  config.nodes = 2;
  config.timeout_s = 60;
  config.progress = LCOMM_PROGRESS_CALLS;
  openblas_set_num_threads(1);
  *made = (training){.chosen = chosen, .epoch = 1, .saved_step = UINT64_MAX};
  made->comm = forked_create(self, &config);
  forked_require(self, training_set_up(made, &why) == 0, "%s", why.text);
  task_begin_epoch(&made->task, chosen->seed, 1, made->order);
}

static int take_steps(training *self, int count, failure *why) {
  double loss;
  int failed = 0;
  for (int i = 0; i < count && !failed; i++) {
    failed = training_step(self, 1e-3f, &loss, why);
  }
  return failed;
}

static void tear_down(training *self) {
  pipeline_disconnect(&self->pipe);
  lcomm_destroy(self->comm);
  training_tear_down(self);
}

static void one_dies(forked *self, int victim) {
  options chosen = options_of(self);
  training mine;
  failure why = {0};
  set_up(self, &chosen, &mine);
  forked_require(self, take_steps(&mine, STEPS, &why) == 0, "%s", why.text);
  if (self->rank == victim) {
    forked_die();
  }
  forked_require(self, take_steps(&mine, STEPS, &why) != 0, "nobody misses rank %d", victim);
  forked_require(self, why.exit_code == EXIT_SETUP && strstr(why.text, "rank "),
                 "no sentence about a rank: %s", why.text);
  forked_require(self, !strchr(why.text, '\n'), "more than a sentence: %s", why.text);
  tear_down(&mine);
}

static void a_rank_of_the_last_stage_dies(forked *self) {
  one_dies(self, 3);
}

static void a_rank_of_the_first_stage_dies(forked *self) {
  one_dies(self, 1);
}

static void nobody_dies(forked *self) {
  options chosen = options_of(self);
  training mine;
  failure why = {0};
  set_up(self, &chosen, &mine);
  forked_require(self, take_steps(&mine, STEPS, &why) == 0, "%s", why.text);
  training_give_up(&mine, &why);
  forked_require(self, take_steps(&mine, STEPS, &why) == 0, "%s", why.text);
  tear_down(&mine);
}

static void a_step_that_is_not_finite_is_skipped_by_all_stages(forked *self) {
  options chosen = options_of(self);
  training mine;
  failure why = {0};
  set_up(self, &chosen, &mine);
  float kept = mine.net.weights[0];
  if (self->rank == 0) {
    mine.net.weights[0] = NAN;
  }
  forked_require(self, take_steps(&mine, 1, &why) == 0, "%s", why.text);
  forked_require(self, mine.skipped == 1, "the step is not skipped");
  if (self->rank == 0) {
    mine.net.weights[0] = kept;
  }
  forked_require(self, take_steps(&mine, 1, &why) == 0, "%s", why.text);
  forked_require(self, mine.skipped == 1, "the next step is skipped, too");
  forked_require(self, isfinite(mine.now.loss) && mine.now.loss > 0.0, "a loss of %g",
                 mine.now.loss);
  tear_down(&mine);
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(a_step_that_is_not_finite_is_skipped_by_all_stages, 2),
    FORKED_TEST(nobody_dies, 2, 4),
    FORKED_TEST_DYING(a_rank_of_the_last_stage_dies, 4, 3),
    FORKED_TEST_DYING(a_rank_of_the_first_stage_dies, 4, 1),
};
RUN_TESTS(tests)

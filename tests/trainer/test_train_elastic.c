/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What happens at the end of an epoch, which is saved: a rank is lost, and some ranks have passed
 * it and others have not; a rank joins, and there is no step left. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unit_tests.h"
#include "trainer/train_elastic.h"
#include "trainer/train_report.h"

void openblas_set_num_threads(int threads);

static bool begin(training *self, const options *chosen, failure *why) {
  *self = (training){.chosen = chosen, .epoch = 1, .saved_step = UINT64_MAX};
  return training_load(self, why) == 0 && elastic_create(chosen, &self->comm, why) == 0 &&
         training_set_up(self, why) == 0;
}

static bool train_an_epoch(training *self, failure *why) {
  results now = {0};
  return training_epoch(self, &now, why) == 0 && training_finish_epoch(self, &now, why) == 0;
}

/* Rank 1 has begun the next epoch when rank 2 is lost. */
static bool lose_at_the_end(training *self, int rank, failure *why) {
  if (!train_an_epoch(self, why)) {
    return false;
  }
  const deal ended = self->deal;
  uint64_t steps = self->step_of_epoch;
  double loss = self->loss_sum;
  if (rank == 1) {
    training_next_epoch(self);
  }
  (void)lcomm_barrier(self->comm); /* all are there */
  if (rank == 2) {
    raise(SIGKILL);
  }
  while (lcomm_barrier(self->comm) == LCOMM_OK) {
  }
  return elastic_go_on(self, why) == 0 && self->epoch == 1 && self->step_of_epoch == steps &&
         self->deal.used == ended.used && !(self->loss_sum < loss || self->loss_sum > loss);
}

static void meet_before_the_end(const crew *c, int rank, report *mine) {
  char *words[] = {"train", "--model",  "mlp", "--data",    "builtin", "--images",
                   "960",   "--epochs", "2",   "--elastic", "1:3",     NULL};
  options chosen;
  training self = {.epoch = 0};
  failure why = {0};
  openblas_set_num_threads(1);
  set_launcher(c, rank);
  bool good = options_parse(sizeof(words) / sizeof *words - 1, words, &chosen, &why) == 0 &&
              begin(&self, &chosen, &why) && lose_at_the_end(&self, rank, &why);
  if (good) {
    training_next_epoch(&self);
    good = train_an_epoch(&self, &why) && self.ranks.size == 2;
  }
  snprintf(mine->sentence, sizeof(mine->sentence), "epoch %d, step %d: %.600s", self.epoch,
           (int)self.step_of_epoch, why.text);
  mine->good = good;
  mine->status = LCOMM_OK;
  lcomm_destroy(self.comm);
  training_tear_down(&self);
}

static void ranks_at_both_sides_of_an_epochs_end_meet_before_it(void **state) {
  (void)state;
  crew c = new_crew(3, meet_before_the_end);
  run_survivors(&c, 1 << 2);
}

/* -------------------------------------------------------------------- joining */

enum { FOUNDERS = 2 };

static char saved_in[320];

static bool is_at_the_end(const training *self) {
  return self->step_of_epoch == self->steps_per_epoch;
}

/* The newcomer waits when the last step of the epoch is done. */
static bool admit_at_the_end(training *self, failure *why) {
  lcomm_changes asked = {0};
  double loss;
  task_begin_epoch(&self->task, self->chosen->seed, self->epoch, self->order);
  while (!is_at_the_end(self)) {
    if (training_step(self, schedule_rate(&self->rates, self->step), &loss, why)) {
      return false;
    }
  }
  while (asked.waiting == 0) { /* barriers tell of newcomers, too */
    if (lcomm_barrier(self->comm) != LCOMM_OK ||
        lcomm_changes_get(self->comm, &asked) != LCOMM_OK) {
      return false;
    }
  }
  return elastic_look(self, why) != 0 && elastic_go_on(self, why) == 0;
}

static bool start_or_join(training *self, const options *chosen, bool joins, failure *why) {
  if (!joins) {
    return begin(self, chosen, why) && admit_at_the_end(self, why);
  }
  *self = (training){.chosen = chosen, .epoch = 1, .saved_step = UINT64_MAX};
  return training_load(self, why) == 0 && elastic_create(chosen, &self->comm, why) == 0 &&
         elastic_join(self, why) == 0;
}

/* What error feedback remembers is shared out with the next step, and is saved after that. */
static bool end_both_epochs(training *self, failure *why) {
  bool good = is_at_the_end(self) && train_an_epoch(self, why) && self->saved_step == UINT64_MAX;
  training_next_epoch(self);
  return good && train_an_epoch(self, why) && self->saved_step == self->step &&
         self->ranks.size == FOUNDERS + 1;
}

static void save_after_the_next_step(const crew *c, int rank, report *mine) {
  char save[sizeof saved_in + 8];
  snprintf(save, sizeof save, "--save=%s", saved_in);
  char *words[] = {"train",
                   "--model=mlp",
                   "--data=builtin",
                   "--images=960",
                   "--epochs=2",
                   "--elastic=1:3",
                   save,
                   "--policy=net=int8+ef min=4K",
                   NULL};
  options chosen;
  training self = {.epoch = 0};
  failure why = {0};
  crew first = *c;
  first.size = FOUNDERS;
  openblas_set_num_threads(1);
  if (rank < FOUNDERS) {
    set_launcher(&first, rank);
  } else {
    set_newcomer(c);
  }
  mine->good = options_parse(sizeof(words) / sizeof *words - 1, words, &chosen, &why) == 0 &&
               start_or_join(&self, &chosen, rank >= FOUNDERS, &why) &&
               end_both_epochs(&self, &why);
  snprintf(mine->sentence, sizeof(mine->sentence), "epoch %d, step %d: %.600s", self.epoch,
           (int)self.step_of_epoch, why.text);
  mine->status = LCOMM_OK;
  lcomm_destroy(self.comm);
  training_tear_down(&self);
}

static void an_epoch_that_ends_with_newcomers_is_saved_with_the_next(void **state) {
  snprintf(saved_in, sizeof saved_in, "%s/saved", ((folder *)*state)->path);
  crew c = new_crew(FOUNDERS + 1, save_after_the_next_step);
  run_survivors(&c, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranks_at_both_sides_of_an_epochs_end_meet_before_it),
    IN_FOLDER(an_epoch_that_ends_with_newcomers_is_saved_with_the_next),
};
RUN_TESTS(tests)

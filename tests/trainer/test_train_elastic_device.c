/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Trainings on (emulated) devices go on with other ranks: one joins, then another one is lost. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/support/emulated/emulated_device.h"
#include "tests/support/emulated/emulated_trainer.h"
#include "tests/support/unit_tests.h"
#include "trainer/train_device.h"
#include "trainer/train_elastic.h"
#include "trainer/train_report.h"

void openblas_set_num_threads(int threads);

enum { FOUNDERS = 2, RANKS = FOUNDERS + 1, LOST = 1, STEPS = 2 };

static const char *precision, *policy;

static bool begin(training *self, const options *chosen, int member, failure *why) {
  *self = (training){.chosen = chosen, .epoch = 1, .saved_step = UINT64_MAX};
  bool good = training_load(self, why) == 0 && elastic_create(chosen, &self->comm, why) == 0 &&
              (member < FOUNDERS ? training_set_up(self, why) : elastic_join(self, why)) == 0;
  if (good) {
    task_begin_epoch(&self->task, chosen->seed, self->epoch, self->order);
  }
  return good;
}

/* One step, or with other ranks what is in its place. */
static bool step(training *self, failure *why) {
  double loss;
  float rate = schedule_rate(&self->rates, self->step);
  return (training_step(self, rate, &loss, why) == 0 && elastic_look(self, why) == 0) ||
         elastic_go_on(self, why) == 0;
}

static bool train(training *self, int member, failure *why) {
  bool good = true;
  while (good && self->ranks.size < RANKS) { /* a newcomer has all of them */
    good = step(self, why);
  }
  uint64_t joined_at = self->step, weights_hash;
  while (good && self->step < joined_at + STEPS) {
    good = step(self, why);
  }
  if (good && member == LOST) {
    raise(SIGKILL);
  }
  while (good && (self->step < joined_at + 2 * STEPS || self->ranks.size == RANKS)) {
    good = step(self, why);
  }
  return good && self->ranks.size == RANKS - 1 &&
         replicas_compare(&self->ranks, training_weights(self), self->net.weight_count, 1,
                          &weights_hash, why) == 0;
}

static void open_devices(void) {
  static const emulated_setup setup = {
      .devices = 1, .kernels = &lcomm_cuda_kernels_table, .seed = 5};
  lcomm_device_replace(emulated_begin(&setup));
  device_replace(emulated_trainer_open);
}

static void train_on_a_device(const crew *c, int member, report *mine) {
  char kept[2][64];
  snprintf(kept[0], sizeof kept[0], "--precision=%s", precision);
  snprintf(kept[1], sizeof kept[1], "--policy=%s", policy);
  char *words[] = {
      "train",     "--model=mlp",      "--data=builtin", "--images=4000", "--epochs=1", "--batch=4",
      "--lr=0.01", "--optimizer=adam", "--elastic=1:4",  "--device=cuda", kept[0],      kept[1],
      NULL};
  options chosen;
  training self = {.epoch = 0};
  failure why = {0};
  crew first = *c;
  first.size = FOUNDERS;
  openblas_set_num_threads(1);
  if (member < FOUNDERS) {
    set_launcher(&first, member);
  } else {
    set_newcomer(c);
  }
  open_devices();
  bool good = options_parse(sizeof(words) / sizeof *words - 1, words, &chosen, &why) == 0 &&
              begin(&self, &chosen, member, &why) && train(&self, member, &why);
  snprintf(mine->sentence, sizeof(mine->sentence), "%d ranks, step %d: %.600s", self.ranks.size,
           (int)self.step, why.text);
  mine->good = good;
  mine->status = LCOMM_OK;
  lcomm_destroy(self.comm);
  training_tear_down(&self);
}

static void go_on(const char *values, const char *words) {
  precision = values;
  policy = words;
  crew c = new_crew(RANKS, train_on_a_device);
  c.timeout_s = 60;
  run_survivors(&c, 1 << LOST);
}

static void exact_trainings_go_on(void **state) {
  (void)state;
  go_on("fp32", "net=none");
}

static void values_of_16_bits_with_error_feedback_go_on(void **state) {
  (void)state;
  go_on("bf16", "net=int8+ef min=4K");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(exact_trainings_go_on),
    cmocka_unit_test(values_of_16_bits_with_error_feedback_go_on),
};
RUN_TESTS(tests)

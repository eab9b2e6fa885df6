/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>

#include "trainer/train_clock.h"
#include "trainer/train_elastic.h"
#include "trainer/train_report.h"
#include "trainer/train_save.h"

/* One epoch: its steps, and what is compared and tested after them. */

/* Each --log-every steps the ranks exchange their losses. Mean over the ranks; fails on all ranks
 * if it is not finite. */
static int share_loss(training *self, uint64_t step, double *loss, failure *why) {
  if (peers_sum_real(&self->ranks, loss, why)) {
    return -1;
  }
  *loss /= self->ranks.size;
  if (isfinite(*loss)) {
    return 0;
  }
  return failure_set_common(why, EXIT_TRAINING,
                            "the loss is not a number any more (epoch %d, seen after step %llu): "
                            "the training diverged; try a lower --lr than %g",
                            self->epoch, (unsigned long long)step, (double)self->chosen->rate);
}

/* Where in the whole run: rates follow the samples, also on another number of ranks. */
static float rate_now(const training *self) {
  uint64_t steps_per_epoch = self->rates.steps / (uint64_t)self->chosen->epochs;
  uint64_t step = (uint64_t)(self->epoch - 1) * steps_per_epoch +
                  self->deal.used / (uint64_t)self->deal.at_first;
  return deal_rate(&self->deal) * schedule_rate(&self->rates, step);
}

/* Not before the first step with newcomers: it shares out what error feedback remembers. */
static bool is_time_to_save(const training *self) {
  const options *chosen = self->chosen;
  bool ended = self->step_of_epoch == self->steps_per_epoch;
  if (!chosen->save || self->joined_step == self->step) {
    return false;
  }
  if (chosen->save_every == 0) {
    return ended;
  }
  return self->step % chosen->save_every == 0 || (ended && self->epoch == chosen->epochs);
}

/* Ranks that were lost while all saved may have been the only ones that did. */
static bool is_yet_to_save(const training *self) {
  return self->step > 0 && is_time_to_save(self) && self->saved_step != self->step;
}

static int train_steps(training *self, progress *shown, double *loss, failure *why) {
  *loss = self->step_of_epoch > 0 ? self->loss_sum / (double)self->step_of_epoch : 0.0;
  if (is_yet_to_save(self) && save_checkpoint(self, why)) {
    return -1;
  }
  while (self->step_of_epoch < self->steps_per_epoch) {
    double now = 0.0;
    float rate = rate_now(self);
    elastic_ask(self);
    if (training_step(self, rate, &now, why)) {
      return -1;
    }
    uint64_t done = self->step_of_epoch;
    progress_show(shown, done, now);
    *loss = self->loss_sum / (double)done;
    if (done % self->chosen->log_every == 0 || done == self->steps_per_epoch) {
      if (share_loss(self, done, loss, why)) {
        return -1;
      }
      log_step(self, *loss, rate, progress_speed(shown, done));
      plot_loss(self->plot, self->step, done, *loss);
    }
    if (is_time_to_save(self) && save_checkpoint(self, why)) {
      return -1;
    }
    if (elastic_look(self, why)) {
      return -1;
    }
  }
  return 0;
}

/* Of all communicators. */
static int read_traffic(const training *self, traffic *now, failure *why) {
  lcomm_comm *all[TRAINING_COMMS];
  int count = training_comms(self, all);
  *now = (traffic){0};
  for (int i = 0; i < count; i++) {
    traffic one;
    if (traffic_read(all[i], &one, why)) {
      return -1;
    }
    traffic_add(now, &one);
  }
  return 0;
}

/* Of all replicas of this rank; of the stages of a pipeline, too. */
static int compare_weights(training *self, results *made, failure *why) {
  if (is_pipelined(self)) {
    return pipeline_compare(&self->pipe, &self->ranks, self->epoch, &made->weights_hash, why);
  }
  return replicas_compare(&self->ranks, training_weights(self), self->net.weight_count, self->epoch,
                          &made->weights_hash, why);
}

int training_epoch(training *self, results *made, failure *why) {
  task_begin_epoch(&self->task, self->chosen->seed, self->epoch, self->order);
  progress shown = progress_begin(self);
  traffic before, after;
  self->overlap = (overlap){0};
  if (read_traffic(self, &before, why)) {
    return -1;
  }
  int failed = train_steps(self, &shown, &made->loss, why);
  progress_end(&shown);
  if (failed || late_sync(self, why) || read_traffic(self, &after, why)) {
    return -1;
  }
  made->trained_s = now_s() - shown.began_s;
  self->pipe.trained_s += made->trained_s;
  made->samples = (self->step_of_epoch - shown.first) * (uint64_t)samples_per_step(self);
  made->samples_per_s = (double)made->samples / made->trained_s;
  made->moved = traffic_since(&after, &before);
  made->moved.communication_us = (uint64_t)(1e6 * self->overlap.communication_s);
  made->moved.exposed_us = (uint64_t)(1e6 * self->overlap.exposed_s);
  if (traffic_sum(&self->ranks, &made->moved, why)) {
    return -1;
  }
  made->epoch = self->epoch;
  made->steps = self->step;
  return 0;
}

int training_finish_epoch(training *self, results *made, failure *why) {
  if (compare_weights(self, made, why) || late_gather_ages(self, why)) {
    return -1;
  }
  return training_test(self, made, why) || stop_signal_check_now(self->comm, why) ? -1 : 0;
}

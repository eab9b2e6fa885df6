/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "trainer/train.h"
#include "trainer/train_clock.h"

bool late_asks_all(const training *self) {
  uint64_t done = self->step_of_epoch + 1;
  return !self->late.may_be || done % self->chosen->log_every == 0 || done == self->steps_per_epoch;
}

bool late_leaves_out(const training *self) {
  uint64_t steps = 0;
  return self->late.may_be && lcomm_behind(gradients_comm(self), &steps) == LCOMM_OK && steps > 0;
}

void late_begin(training *self) {
  double sleep_s =
      slow_sleep_s(&self->chosen->slow, self->ranks.rank, self->step, self->late.computed_s);
  if (sleep_s > 0) {
    double whole_s = floor(sleep_s);
    struct timespec time = {.tv_sec = (time_t)whole_s,
                            .tv_nsec = (long)(1e9 * (sleep_s - whole_s))};
    nanosleep(&time, NULL);
  }
  self->late.began_s = now_s();
}

void late_computed(training *self) {
  self->late.computed_s = now_s() - self->late.began_s;
}

lcomm_status late_average(training *self) {
  model *net = &self->net;
  net->on->clear(net->gradients, net->weight_count * sizeof(float));
  gradients_begin(&self->gradients);
  gradients_ready(&self->gradients, 0, net->parameter_count);
  self->late.left_out++;
  return gradients_wait(&self->gradients);
}

/* Weights do not change while a gradient is computed: only here. */
static int update_by(training *self, lcomm_status (*hand_out)(lcomm_comm *comm, int *there),
                     failure *why) {
  lcomm_comm *comm = gradients_comm(self);
  int there = 1;
  while (there) {
    lcomm_status status = hand_out(comm, &there);
    if (peers_check(comm, status, "taking the averages of a step", why)) {
      return -1;
    }
    bool spoilt = lcomm_tensors_not_finite(comm) > 0;
    float rate = self->late.rates[self->late.updates % LATE_UNDER_WAY_MOST];
    if (there && training_update(self, rate, spoilt, why)) {
      return -1;
    }
    self->late.updates += there != 0;
  }
  return 0;
}

int late_update(training *self, bool spoilt, failure *why) {
  if (!self->late.is_stale) {
    return training_update(self, self->now.rate, spoilt, why);
  }
  self->late.rates[self->late.brought++ % LATE_UNDER_WAY_MOST] = self->now.rate;
  return update_by(self, lcomm_tensors_next, why);
}

int late_sync(training *self, failure *why) {
  return self->late.is_stale ? update_by(self, lcomm_tensors_sync, why) : 0;
}

int late_gather_ages(training *self, failure *why) {
  enum { MOST, MILLI_MEAN, VALUES };
  lcomm_staleness mine;
  if (!self->late.is_stale) {
    return 0;
  }
  if (peers_check(self->comm, lcomm_staleness_get(gradients_comm(self), &mine), "asking for ages",
                  why)) {
    return -1;
  }
  uint64_t values[VALUES] = {mine.age_most, (uint64_t)(1e3 * mine.age_mean + 0.5)};
  const uint64_t *all = peers_gather(&self->ranks, values, VALUES, why);
  if (!all) {
    return -1;
  }
  self->late.age_most = 0;
  self->late.age_mean = 0;
  for (int rank = 0; rank < self->ranks.size; rank++) {
    const uint64_t *of = all + rank * VALUES;
    self->late.age_most = of[MOST] > self->late.age_most ? of[MOST] : self->late.age_most;
    self->late.age_mean += 1e-3 * (double)of[MILLI_MEAN] / self->ranks.size;
  }
  return 0;
}

void late_report(const training *self) {
  uint64_t steps = self->late.left_out;
  if (steps > 0) {
    printf("train: rank %d was behind the others and left out %" PRIu64 " of its %" PRIu64
           " steps: %" PRIu64 " samples were not used\n",
           self->ranks.rank, steps, self->step,
           steps * (uint64_t)self->deal.batch * (uint64_t)self->deal.accumulate);
    fflush(stdout);
  }
}

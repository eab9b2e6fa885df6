/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <inttypes.h>
#include <stdio.h>

#include "trainer/train.h"

bool late_asks_all(const training *self) {
  uint64_t done = self->step_of_epoch + 1;
  return !self->late.may_be || done % self->chosen->log_every == 0 || done == self->steps_per_epoch;
}

bool late_leaves_out(const training *self) {
  uint64_t steps = 0;
  return self->late.may_be && lcomm_behind(gradients_comm(self), &steps) == LCOMM_OK && steps > 0;
}

lcomm_status late_average(training *self) {
  model *net = &self->net;
  net->on->clear(net->gradients, net->weight_count * sizeof(float));
  gradients_begin(&self->gradients);
  gradients_ready(&self->gradients, 0, net->parameter_count);
  self->late.left_out++;
  return gradients_wait(&self->gradients);
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

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_overlap.h"

#include "trainer/train_clock.h"

static double wire_s(const lcomm_comm *comm) {
  lcomm_stats stats;
  return lcomm_stats_get(comm, &stats) == LCOMM_OK ? stats.wire_s : 0.0;
}

void overlap_begin(overlap *self, const lcomm_comm *comm) {
  self->began_s = 0.0;
  self->wire_s = wire_s(comm);
}

void overlap_sent(overlap *self) {
  if (self->began_s == 0.0) {
    self->began_s = now_s();
  }
}

void overlap_waits(overlap *self) {
  overlap_sent(self);
  self->waiting_s = now_s();
}

void overlap_ends(overlap *self, const lcomm_comm *comm) {
  double ended_s = now_s(), exposed_s = ended_s - self->waiting_s;
  double all_s = ended_s - self->began_s, flying_s = wire_s(comm) - self->wire_s;
  flying_s = flying_s < all_s ? flying_s : all_s;
  self->communication_s += flying_s > exposed_s ? flying_s : exposed_s;
  self->exposed_s += exposed_s;
}

double overlap_hidden(double communication_s, double exposed_s) {
  return communication_s > 0.0 ? 1.0 - exposed_s / communication_s : 1.0;
}

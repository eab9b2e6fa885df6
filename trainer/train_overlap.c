/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_overlap.h"

#include <stdbool.h>

#include "trainer/train_clock.h"

overlap_moment overlap_now(const lcomm_comm *comm) {
  lcomm_stats stats;
  bool has_stats = lcomm_stats_get(comm, &stats) == LCOMM_OK;
  return (overlap_moment){.now_s = now_s(), .wire_s = has_stats ? stats.wire_s : 0.0};
}

void overlap_begin(overlap *self, overlap_moment at) {
  self->began_s = 0.0;
  self->wire_s = at.wire_s;
}

void overlap_sent(overlap *self, double now_s) {
  if (self->began_s == 0.0) {
    self->began_s = now_s;
  }
}

void overlap_waits(overlap *self, double now_s) {
  overlap_sent(self, now_s);
  self->waiting_s = now_s;
}

void overlap_ends(overlap *self, overlap_moment at) {
  double exposed_s = at.now_s - self->waiting_s;
  double all_s = at.now_s - self->began_s, flying_s = at.wire_s - self->wire_s;
  flying_s = flying_s < all_s ? flying_s : all_s;
  self->communication_s += flying_s > exposed_s ? flying_s : exposed_s;
  self->exposed_s += exposed_s;
}

double overlap_hidden(double communication_s, double exposed_s) {
  return communication_s > 0.0 ? 1.0 - exposed_s / communication_s : 1.0;
}

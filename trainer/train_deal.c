/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_deal.h"

static void cut(deal *self, int share) {
  self->accumulate = (share + self->room - 1) / self->room;
  while (share % self->accumulate != 0) {
    self->accumulate++;
  }
  self->batch = share / self->accumulate;
}

void deal_begin(deal *made, uint64_t count, int ranks, int share, int room) {
  *made = (deal){.count = count, .ranks = ranks, .room = room, .rank_share = share};
  cut(made, share);
  made->room = made->batch;
  made->at_first = deal_samples(made);
}

void deal_among(deal *self, int ranks) {
  self->ranks = ranks;
  cut(self, self->at_first % ranks == 0 ? self->at_first / ranks : self->rank_share);
}

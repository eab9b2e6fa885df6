/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <inttypes.h>
#include <xxhash.h>

#include "trainer/train_pipeline.h"

/* What the stages of a pipeline know of each other at the end of an epoch. */

enum { WEIGHTS, TIED, WAITED_US, TRAINED_US, SENT, EXACT, COUNT };

static void describe(const pipeline *self, uint64_t mine[COUNT]) {
  const model *net = self->net;
  const model_parameter *tied = self->tied;
  pipeline_sum sent = pipeline_sent(self);
  mine[WEIGHTS] = XXH3_64bits(net->weights, net->weight_count * sizeof(float));
  mine[TIED] = 0;
  if (tied) {
    const element *first = element_at(net->on, net->weights, tied->offset);
    mine[TIED] = XXH3_64bits(first, tied->count * sizeof(float));
  }
  mine[WAITED_US] = (uint64_t)(1e6 * self->waited_s);
  mine[TRAINED_US] = (uint64_t)(1e6 * self->trained_s);
  mine[SENT] = sent.sent_bytes - self->tested.sent_bytes;
  mine[EXACT] = sent.exact_bytes - self->tested.exact_bytes;
}

static void take_figures(pipeline *self, const uint64_t *all, int stages, int replicas) {
  pipeline_figures *made = &self->figures;
  made->sent_bytes = made->exact_bytes = 0;
  made->trained_s = 1e-6 * (double)all[TRAINED_US];
  for (int stage = 0; stage < stages; stage++) {
    const uint64_t *of = all + (size_t)stage * (size_t)replicas * COUNT;
    made->hashes[stage] = of[WEIGHTS];
    made->waits_s[stage] = 0.0;
    for (int i = 0; i < replicas; i++) {
      made->waits_s[stage] += 1e-6 * (double)of[i * COUNT + WAITED_US] / replicas;
      made->sent_bytes += of[i * COUNT + SENT];
      made->exact_bytes += of[i * COUNT + EXACT];
    }
  }
}

static int differ(int rank, int other, const char *what, int epoch, failure *why) {
  return failure_set_common(why, EXIT_TRAINING,
                            "the %s of rank %d differ from those of rank %d after epoch %d; the "
                            "run is worthless, please report it with the policy and the number "
                            "of ranks, nodes and stages",
                            what, rank, other, epoch);
}

int pipeline_compare(pipeline *self, peers *ranks, int epoch, uint64_t *hash, failure *why) {
  uint64_t mine[COUNT];
  int stages = self->last + 1, replicas = ranks->size / stages;
  describe(self, mine);
  const uint64_t *all = peers_gather(ranks, mine, COUNT, why);
  if (!all) {
    return -1;
  }
  for (int rank = 0; rank < ranks->size; rank++) {
    int first = rank - rank % replicas;
    if (all[rank * COUNT + WEIGHTS] != all[first * COUNT + WEIGHTS]) {
      return differ(rank, first, "weights", epoch, why);
    }
  }
  int end = self->last * replicas;
  if (all[TIED] != all[end * COUNT + TIED]) {
    return differ(end, 0, "weights of the embedding", epoch, why);
  }
  take_figures(self, all, stages, replicas);
  *hash = XXH3_64bits(self->figures.hashes, (size_t)stages * sizeof(uint64_t));
  return 0;
}

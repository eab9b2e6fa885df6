/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/session.h"
#include "trainer/policy_words.h"

#include <stdlib.h>
#include <string.h>

static int no_memory(failure *why) {
  return failure_set(why, EXIT_SETUP,
                     "no memory to train; use fewer ranks on this machine, or a "
                     "smaller --batch");
}

static int plan_steps(session *self, failure *why) {
  uint64_t together = (uint64_t)self->ranks.size * (uint64_t)self->chosen->batch;
  self->steps_per_epoch = self->data.train.count / together;
  if (self->steps_per_epoch > 0) {
    return 0;
  }
  return failure_set(why, EXIT_SETUP,
                     "%u images are too few for one step of %d ranks with %d images each; use a "
                     "smaller --batch or fewer ranks",
                     self->data.train.count, self->ranks.size, self->chosen->batch);
}

/* What a rank does by itself. */
static int prepare(session *self, failure *why) {
  const options *chosen = self->chosen;
  if (dataset_load(chosen->data, chosen->seed, &self->data, why)) {
    return -1;
  }
  if (chosen->images > 0) {
    dataset_limit(&self->data, chosen->images);
  }
  if (plan_steps(self, why)) {
    return -1;
  }
  if (model_create(chosen->model, self->data.shape, DATASET_CLASSES, chosen->batch, &self->net)) {
    return no_memory(why);
  }
  bool kept = policy_keeps_momentum(lcomm_policy_string(self->comm));
  if (optimizer_create(chosen->optimizer, self->net.weight_count, kept ? 0.0f : chosen->momentum,
                       &self->optimizer)) {
    return no_memory(why);
  }
  self->order = malloc(self->data.train.count * sizeof *self->order);
  self->labels = malloc((size_t)chosen->batch);
  return self->order && self->labels ? 0 : no_memory(why);
}

static int compare_data(session *self, failure *why) {
  uint64_t mine = dataset_hash(&self->data);
  const uint64_t *hashes = peers_gather(&self->ranks, &mine, 1, why);
  if (!hashes) {
    return -1;
  }
  for (int rank = 1; rank < self->ranks.size; rank++) {
    if (hashes[rank] != hashes[0]) {
      return failure_set(why, EXIT_SETUP,
                         "rank %d has other images than rank 0 (this rank %d uses %s); give all "
                         "ranks the same --data",
                         rank, self->ranks.rank,
                         self->data.built_in ? "the built-in images" : self->data.where);
    }
  }
  return 0;
}

static int share_weights(session *self, failure *why) {
  if (self->ranks.rank == 0) {
    model_draw_weights(&self->net, self->chosen->seed);
  }
  lcomm_status status =
      lcomm_broadcast(self->comm, self->net.weights, self->net.weight_count, LCOMM_FLOAT32, 0);
  return peers_check(self->comm, status, "the broadcast of the first weights", why);
}

static int register_gradients(session *self, failure *why) {
  for (int i = 0; i < self->net.parameter_count; i++) {
    const model_parameter *at = &self->net.parameters[i];
    lcomm_status status = lcomm_tensor_add(self->comm, at->name, self->net.gradients + at->offset,
                                           at->count, LCOMM_FLOAT32, LCOMM_AVG, &self->tensors[i]);
    if (peers_check(self->comm, status, at->name, why) == 0) {
      continue;
    }
    lcomm_abort(self->comm, why->text);
    return -1;
  }
  return 0;
}

int session_open(lcomm_comm *comm, const options *chosen, session *made, failure *why) {
  memset(made, 0, sizeof *made);
  made->comm = comm;
  made->chosen = chosen;
  if (peers_create(comm, &made->ranks)) {
    no_memory(why);
    lcomm_abort(comm, why->text);
    return -1;
  }
  if (why->exit_code == 0) {
    prepare(made, why);
  }
  if (peers_agree(&made->ranks, why) || compare_data(made, why) || share_weights(made, why)) {
    return -1;
  }
  return register_gradients(made, why);
}

void session_close(session *self) {
  free(self->order);
  free(self->labels);
  optimizer_destroy(&self->optimizer);
  model_destroy(&self->net);
  dataset_free(&self->data);
  peers_destroy(&self->ranks);
}

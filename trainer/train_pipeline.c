/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/train_clock.h"

/* What stages send each other. */

static int stage_of(const pipeline *self) {
  return self->net->part.stage;
}

double pipeline_bubble(int stages, int batches) {
  return (double)(stages - 1) / (batches + stages - 1);
}

model_part pipeline_part(int stages, const peers *ranks, int batches) {
  int stage = ranks->rank / (ranks->size / stages), kept = stages - stage;
  return (model_part){stage, stages, kept < batches ? kept : batches};
}

/* ---------------------------------------------------------------- messages */

static lcomm_status wait_for(pipeline *self, lcomm_request *request) {
  double began_s = now_s();
  lcomm_status status = lcomm_wait(self->stages, request);
  self->waited_s += now_s() - began_s;
  return status;
}

static lcomm_status start(pipeline *self, const float *data, size_t count, int to,
                          pipeline_send *sent) {
  lcomm_status status = lcomm_isend(self->stages, data, count, LCOMM_FLOAT32, to, &sent->request);
  sent->flies = status == LCOMM_OK;
  return status;
}

static lcomm_status end(pipeline *self, pipeline_send *sent) {
  if (!sent->flies) {
    return LCOMM_OK;
  }
  sent->flies = false;
  return wait_for(self, &sent->request);
}

lcomm_status pipeline_receive(pipeline *self, int number, int batch) {
  lcomm_request request;
  lcomm_status status = end(self, &self->sent[number]);
  if (stage_of(self) == 0 || status != LCOMM_OK) {
    return status;
  }
  status = lcomm_irecv(self->stages, model_input(self->net), self->between * (size_t)batch,
                       LCOMM_FLOAT32, stage_of(self) - 1, &request);
  return status == LCOMM_OK ? wait_for(self, &request) : status;
}

lcomm_status pipeline_send_on(pipeline *self, int number, int batch) {
  const float *made = self->net->activations[self->net->layer_count];
  return start(self, made, self->behind * (size_t)batch, stage_of(self) + 1, &self->sent[number]);
}

lcomm_status pipeline_expect(pipeline *self, int batch) {
  return lcomm_irecv(self->stages, model_logits_delta(self->net), self->behind * (size_t)batch,
                     LCOMM_FLOAT32, stage_of(self) + 1, &self->awaited);
}

lcomm_status pipeline_await(pipeline *self) {
  return wait_for(self, &self->awaited);
}

/* The next backward writes where this gradient is, so a copy is sent. */
lcomm_status pipeline_send_back(pipeline *self, int number, int batch) {
  size_t count = self->between * (size_t)batch;
  float *copy = self->back[number % 2];
  lcomm_status status = end(self, &self->back_sent[number % 2]);
  if (status != LCOMM_OK) {
    return status;
  }
  memcpy(copy, model_input_delta(self->net), count * sizeof *copy);
  return start(self, copy, count, stage_of(self) - 1, &self->back_sent[number % 2]);
}

lcomm_status pipeline_finish(pipeline *self) {
  lcomm_status status = LCOMM_OK;
  for (int i = 0; i < self->net->part.kept; i++) {
    status = first_error(status, end(self, &self->sent[i]));
  }
  for (int i = 0; i < 2; i++) {
    status = first_error(status, end(self, &self->back_sent[i]));
  }
  return status;
}

pipeline_sum pipeline_sent(const pipeline *self) {
  lcomm_stats stats = {0};
  pipeline_sum made = {0};
  lcomm_stats_get(self->stages, &stats);
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    made.sent_bytes += stats.sent_bytes[link];
    made.exact_bytes += stats.exact_bytes[link];
  }
  return made;
}

/* ------------------------------------------------------------ tied weights */

/* Whole numbers are exact under every policy. */
static lcomm_status exchange_exact(pipeline *self, const float *mine, float *other, size_t count) {
  int peer = stage_of(self) == 0 ? self->last : 0;
  lcomm_request sent, received;
  lcomm_status status = lcomm_isend(self->stages, mine, count, LCOMM_INT32, peer, &sent);
  if (status != LCOMM_OK) {
    return status;
  }
  status = lcomm_irecv(self->stages, other, count, LCOMM_INT32, peer, &received);
  if (status == LCOMM_OK) {
    status = wait_for(self, &received);
  }
  return first_error(wait_for(self, &sent), status);
}

/* Both ends add the same two numbers, whose sum does not depend on their order. */
lcomm_status pipeline_add_tied(pipeline *self) {
  if (!self->tied) {
    return LCOMM_OK;
  }
  float *mine = self->net->gradients + self->tied->offset;
  lcomm_status status = exchange_exact(self, mine, self->other, self->tied->count);
  if (status == LCOMM_OK) {
    self->net->on->accumulate(mine, self->other, self->tied->count);
  }
  return status;
}

/* ------------------------------------------------------------------ set-up */

static const model_parameter *find_tied(const model *net) {
  for (int i = 0; i < net->parameter_count; i++) {
    if (strcmp(net->parameters[i].name, "embedding.weight") == 0) {
      return &net->parameters[i];
    }
  }
  return NULL;
}

int pipeline_check(int stages, int ranks, failure *why) {
  if (ranks % stages == 0) {
    return 0;
  }
  return failure_set(why, EXIT_SETUP,
                     "--pipeline %d needs as many ranks for each stage, and %d ranks are no "
                     "multiple of %d",
                     stages, ranks, stages);
}

static int allocate(pipeline *made) {
  const model *net = made->net;
  size_t batch = (size_t)net->batch_max, other = made->tied ? made->tied->count : 0;
  made->back[0] = malloc(made->between * batch * sizeof(float));
  made->back[1] = malloc(made->between * batch * sizeof(float));
  made->other = malloc(other * sizeof(float) + 1);
  return made->back[0] && made->back[1] && made->other ? 0 : -1;
}

static int split(pipeline *made, peers *ranks, failure *why) {
  int stage = stage_of(made), replicas = ranks->size / made->net->part.stages;
  lcomm_status status = lcomm_split(ranks->comm, stage, ranks->rank, NULL, &made->replicas);
  if (peers_check(ranks->comm, status, "making the communicator of a stage", why)) {
    return -1;
  }
  status = lcomm_split(ranks->comm, ranks->rank % replicas, stage, NULL, &made->stages);
  return peers_check(ranks->comm, status, "making the communicator of a pipeline", why);
}

/* How many weights each stage has. */
static int share_counts(pipeline *made, peers *ranks, failure *why) {
  uint64_t count = made->net->weight_count;
  int stages = made->net->part.stages;
  const uint64_t *all = peers_gather(ranks, &count, 1, why);
  for (int i = 0; all && i < stages; i++) {
    made->figures.weights[i] = all[i * (ranks->size / stages)];
  }
  return all ? 0 : -1;
}

int pipeline_connect(pipeline *made, peers *ranks, model *net, failure *why) {
  failure mine = {0};
  made->net = net;
  made->last = net->part.stages - 1;
  made->between = layer_shape_count(net->layers[0].in);
  made->behind = layer_shape_count(net->layers[net->layer_count - 1].out);
  made->tied = net->part.stage == 0 || net->part.stage == made->last ? find_tied(net) : NULL;
  if (allocate(made)) {
    failure_set(&mine, EXIT_SETUP,
                "no memory for the messages between stages; use a smaller "
                "--batch");
  }
  if (peers_agree(ranks, &mine)) {
    *why = mine;
    return -1;
  }
  return split(made, ranks, why) || share_counts(made, ranks, why) ? -1 : 0;
}

lcomm_status pipeline_disconnect(pipeline *self) {
  lcomm_status status = lcomm_destroy(self->stages);
  status = first_error(lcomm_destroy(self->replicas), status);
  self->stages = self->replicas = NULL;
  return status;
}

void pipeline_free(pipeline *self) {
  free(self->back[0]);
  free(self->back[1]);
  free(self->other);
  memset(self, 0, sizeof *self);
}

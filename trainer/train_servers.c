/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_servers.h"

#include <math.h>
#include <string.h>

#include "trainer/train_report.h"

void servers_part(training *self, failure *why) {
  lcomm_comm *all = self->comm, *part = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = "net=none";
  if (!policy_has_servers(lcomm_policy_string(all)) || lcomm_size(all) == 1) {
    return;
  }
  lcomm_status status = lcomm_split(all, lcomm_is_server(all), lcomm_rank(all), &config, &part);
  if (peers_check(all, status, "parting workers and servers", why) == 0) {
    self->served = all;
    self->comm = part;
  }
}

int servers_share_weights(training *self, failure *why) {
  lcomm_comm *all = self->served;
  if (!all || !self->chosen->serve_weights) {
    return 0;
  }
  int32_t first = lcomm_is_server(all) ? lcomm_size(all) : lcomm_rank(all);
  lcomm_status status = lcomm_allreduce(all, &first, &first, 1, LCOMM_INT32, LCOMM_MIN);
  if (status == LCOMM_OK) {
    status = lcomm_broadcast(all, self->net.weights, self->net.weight_count, LCOMM_FLOAT32, first);
  }
  return peers_check(all, status, "the broadcast of the first weights", why);
}

/* ------------------------------------------------------------------ weights */

static size_t place_of(const training *self, const lcomm_tensor *tensor) {
  int i = 0;
  while (self->gradients.tensors[i] != tensor) {
    i++;
  }
  return self->gradients.offsets[i];
}

static bool is_finite(const float *values, uint64_t count) {
  uint64_t i = 0;
  while (i < count && isfinite(values[i])) {
    i++;
  }
  return i == count;
}

/* A part whose average is not finite is not stepped. */
static int step_weights(void *context, const lcomm_server_piece *piece) {
  training *self = context;
  size_t at = place_of(self, piece->tensor) + piece->first;
  weight_span of = {.count = piece->count,
                    .weights = self->net.weights + at,
                    .gradients = piece->values,
                    .first = self->optimizer.first + at,
                    .rate = schedule_rate(&self->rates, piece->step),
                    .momentum = self->chosen->momentum};
  if (is_finite(piece->values, piece->count)) {
    self->net.on->step[OPTIMIZER_SGD](&of);
  }
  memcpy(piece->values, of.weights, piece->count * sizeof(float));
  return 0;
}

/* ------------------------------------------------------------------- a server */

/* Steps are counted as the workers do. */
static int make_optimizer(training *self, failure *why) {
  const options *chosen = self->chosen;
  int workers = lcomm_size(self->served) - self->ranks.size;
  if (!chosen->serve_weights) {
    return 0;
  }
  if (optimizer_create_on(self->net.on, chosen->optimizer, self->net.weight_count, chosen->momentum,
                          &self->optimizer)) {
    return failure_set(why, EXIT_SETUP, "no memory to serve; use more servers");
  }
  return training_plan(self, workers, why);
}

/* Tensors like those of the workers: a model that nobody computes with. */
static int make_tensors(training *self, failure *why) {
  const options *chosen = self->chosen;
  const task *learnt = &self->task;
  const backend *on = device_open(DEVICE_CPU, self->ranks.rank, chosen->precision, why);
  if (!on || training_load(self, why)) {
    return -1;
  }
  model_part part = pipeline_part(1, &self->ranks, 1);
  if (model_create_part(on, chosen->model, learnt->sample, learnt->classes, 1, part, &self->net)) {
    return failure_set(why, EXIT_SETUP, "no memory to serve; use more servers");
  }
  self->net.precision = chosen->precision;
  return gradients_register(&self->gradients, self->served, &self->net, why);
}

int servers_serve(training *self, failure *why) {
  if (peers_create(self->comm, &self->ranks)) {
    failure_set(why, EXIT_SETUP, "no memory to serve");
  }
  if (why->exit_code == 0) {
    if (make_tensors(self, why) == 0) {
      make_optimizer(self, why);
    }
  }
  if (why->exit_code != 0) {
    lcomm_abort(self->served, why->text);
    return -1;
  }
  if (servers_share_weights(self, why)) {
    return -1;
  }
  lcomm_server_update update = self->chosen->serve_weights ? step_weights : NULL;
  return peers_check(self->served, lcomm_server_run(self->served, update, self), "serving", why);
}

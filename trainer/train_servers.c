/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_servers.h"

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
    make_tensors(self, why);
  }
  if (why->exit_code != 0) {
    lcomm_abort(self->served, why->text);
    return -1;
  }
  return peers_check(self->served, lcomm_server_run(self->served, NULL, NULL), "serving", why);
}

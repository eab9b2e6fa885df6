/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <stdio.h>
#include <stdlib.h>

#include "trainer/train.h"
#include "trainer/train_report.h"
#include "trainer/train_save.h"
#include "trainer/train_servers.h"

/* Before the first step: every rank loads its samples and makes its model, then they see that all
 * have the same and begin with the same weights. */

/* Longer than any policy may be. */
enum { POLICY_SIZE = 2048 };

static int no_memory(failure *why) {
  return failure_set(why, EXIT_SETUP,
                     "no memory to train; use fewer ranks on this machine, or a "
                     "smaller --batch");
}

/* A share of --batch-global that is larger than --batch is worked off in equal parts. */
static int plan_batch(training *self, int ranks, failure *why) {
  const options *chosen = self->chosen;
  int share = chosen->batch * chosen->accumulate;
  if (chosen->batch_global > 0) {
    share = chosen->batch_global / ranks;
    if (share * ranks != chosen->batch_global) {
      return failure_set(why, EXIT_SETUP,
                         "--batch-global %d cannot be spread evenly over %d ranks%s; give a "
                         "multiple of that",
                         chosen->batch_global, ranks, is_pipelined(self) ? " of a stage" : "");
    }
  }
  deal_begin(&self->deal, self->task.train_count, ranks, share, chosen->batch);
  return 0;
}

schedule training_rates(const options *chosen, uint64_t steps) {
  return (schedule){chosen->schedule, chosen->rate, chosen->warmup, steps};
}

int training_plan(training *self, int ranks, failure *why) {
  const options *chosen = self->chosen;
  if (plan_batch(self, ranks, why)) {
    return -1;
  }
  self->steps_per_epoch = deal_steps_left(&self->deal);
  self->rates = training_rates(chosen, (uint64_t)chosen->epochs * self->steps_per_epoch);
  if (self->steps_per_epoch > 0) {
    return 0;
  }
  return failure_set(why, EXIT_SETUP,
                     "%u %s are too few for one step of %d ranks with %d each; use a smaller "
                     "--batch or fewer ranks",
                     self->task.train_count, task_samples(&self->task), ranks,
                     self->deal.batch * self->deal.accumulate);
}

/* All of the model, or what of it this rank steps. */
static int divide_optimizer(training *self) {
  const model *net = &self->net;
  const shard_plan *plan = &self->shard.plan;
  optimizer_part parts[MODEL_PARAMETERS_MAX];
  for (int i = 0; i < net->parameter_count; i++) {
    const model_parameter *at = &net->parameters[i];
    parts[i] = (optimizer_part){at->offset, at->count, at->rows > 0};
  }
  if (optimizer_divide(&self->optimizer, parts, net->parameter_count, self->chosen->decay)) {
    return -1;
  }
  if (!is_sharded(self)) {
    return 0;
  }
  return optimizer_take(&self->optimizer, plan->pieces, plan->piece_count, shard_share_sums,
                        &self->shard);
}

/* Who sends momentum has an optimiser that takes it. */
static int check_momentum(const training *self, failure *why) {
  const char *policy = lcomm_policy_string(whole_comm(self));
  bool takes = self->chosen->optimizer == OPTIMIZER_ONEBIT_ADAM;
  if (takes != policy_sends_momentum(policy)) {
    return failure_set_common(why, EXIT_SETUP,
                              "--optimizer onebit-adam goes with a policy that has adam=, such as "
                              "\"net=sign adam=onebit warmup=1000\"; here the optimizer is %s and "
                              "the policy is '%.200s'",
                              optimizer_name(self->chosen->optimizer), policy);
  }
  if (policy_has_other_beta(policy)) {
    return failure_set_common(why, EXIT_SETUP,
                              "beta1 of the trainer's Adam is 0.9; leave out beta1= in the policy "
                              "'%.200s'",
                              policy);
  }
  return 0;
}

static int make_optimizer(training *self, failure *why) {
  const options *chosen = self->chosen;
  if (check_momentum(self, why)) {
    return -1;
  }
  bool kept = policy_keeps_momentum(lcomm_policy_string(whole_comm(self)));
  size_t count = is_sharded(self) ? self->shard.plan.count : self->net.weight_count;
  if (optimizer_create_on(self->net.on, chosen->optimizer, count, kept ? 0.0f : chosen->momentum,
                          &self->optimizer) ||
      divide_optimizer(self) || master_create(self)) {
    return no_memory(why);
  }
  return 0;
}

static int make_model(training *self, failure *why) {
  const options *chosen = self->chosen;
  const task *learnt = &self->task;
  const backend *on = device_open(chosen->device, self->ranks.rank, chosen->precision, why);
  if (!on) {
    return -1;
  }
  model_part part = pipeline_part(chosen->pipeline, &self->ranks, self->deal.accumulate);
  if (model_create_part(on, chosen->model, learnt->sample, learnt->classes, self->deal.room, part,
                        &self->net)) {
    return no_memory(why);
  }
  if (!on->is_host) {
    model_rehearse(&self->net);
    self->host = malloc(self->net.weight_count * sizeof(float));
    if (!self->host) {
      return no_memory(why);
    }
  }
  self->net.precision = chosen->precision;
  self->scale = loss_scale_begin(chosen->precision);
  if (is_sharded(self) && shard_create(&self->shard, chosen->shard, self->comm, &self->net)) {
    return no_memory(why);
  }
  return make_optimizer(self, why);
}

int training_load(training *self, failure *why) {
  const options *chosen = self->chosen;
  if (task_load(model_context(chosen->model), chosen->data, chosen->seed, &self->task, why)) {
    return -1;
  }
  if (chosen->images > 0) {
    task_limit(&self->task, chosen->images);
  }
  return 0;
}

int training_allocate(training *self, failure *why) {
  const task *learnt = &self->task;
  if (make_model(self, why)) {
    return -1;
  }
  self->order = malloc(learnt->train_count * sizeof *self->order);
  self->labels = malloc((size_t)self->deal.room * (size_t)learnt->labels);
  return self->order && self->labels && training_make_room(self) == 0 ? 0 : no_memory(why);
}

int training_make_room(training *self) {
  size_t all = (size_t)self->ranks.size * self->net.statistics_count;
  float *statistics = realloc(self->statistics, all * sizeof *statistics + 1);
  if (!statistics) {
    return -1;
  }
  self->statistics = statistics;
  size_t summed =
      self->chosen->shard == SHARD_GRADIENTS ? self->shard.plan.count : self->net.weight_count;
  if (self->deal.accumulate > 1 && !self->sum) {
    self->sum = self->net.on->get(summed * sizeof(float) + 1);
  }
  return self->sum || self->deal.accumulate == 1 ? 0 : -1;
}

/* This rank loads its samples and makes its model, without the others. */
static void prepare(training *self, failure *why) {
  bool loaded = self->task.train_count > 0 || training_load(self, why) == 0;
  if (loaded && pipeline_check(self->chosen->pipeline, self->ranks.size, why) == 0 &&
      training_plan(self, replicas_of(self), why) == 0 && training_allocate(self, why) == 0) {
    save_check(self, why);
  }
}

/* All ranks must have the same samples. */
static int compare_data(training *self, failure *why) {
  uint64_t mine = task_hash(&self->task);
  const uint64_t *hashes = peers_gather(&self->ranks, &mine, 1, why);
  if (!hashes) {
    return -1;
  }
  for (int rank = 1; rank < self->ranks.size; rank++) {
    if (hashes[rank] != hashes[0]) {
      return failure_set(why, EXIT_SETUP,
                         "rank %d has other %s than rank 0 (this rank %d uses %s); give all ranks "
                         "the same --data",
                         rank, task_samples(&self->task), self->ranks.rank,
                         task_where(&self->task));
    }
  }
  return 0;
}

const float *training_look(training *self, const float *values, size_t count) {
  if (!self->host) {
    return values;
  }
  self->net.on->read(self->host, values, count * sizeof *values);
  return self->host;
}

const float *training_weights(training *self) {
  const model *net = &self->net;
  if (!self->host) {
    return net->weights;
  }
  net->on->load(self->host, net->weights, net->weight_count);
  return self->host;
}

/* Rank 0, or that of a stage, draws the weights, the others receive them. */
static int share_weights(training *self, failure *why) {
  model *net = &self->net;
  float *first = self->host ? self->host : net->weights;
  if (replica_of(self) == 0) {
    model_draw(net, self->chosen->seed, first);
  }
  lcomm_comm *comm = replicas_comm(self);
  lcomm_status status = lcomm_broadcast(comm, first, net->weight_count, LCOMM_FLOAT32, 0);
  if (peers_check(comm, status, "the broadcast of the first weights", why)) {
    return -1;
  }
  if (self->host) {
    net->on->store(net->weights, first, net->weight_count);
  }
  master_begin(self, first);
  return 0;
}

/* Of shards each rank steps its own, of stages each has a part: all are waited for. A checkpoint
 * has what all ranks remember, and servers are ranks that take no part in it. */
static int check_owners(const training *self, failure *why) {
  bool is_stale = policy_is_stale(lcomm_policy_string(whole_comm(self)));
  const char *word = is_stale ? "stale=" : self->served ? "algo=servers" : "quorum=";
  if (is_sharded(self) || is_pipelined(self)) {
    return failure_set_common(why, EXIT_SETUP, "%s does not go with %s, whose steps need all ranks",
                              word, is_sharded(self) ? "--shard" : "--pipeline");
  }
  if (self->served && (self->chosen->save || self->chosen->resume)) {
    return failure_set_common(why, EXIT_SETUP,
                              "algo=servers does not go with --save and --resume: servers remember "
                              "a part of what error feedback left out, and save nothing");
  }
  if (self->net.precision == PRECISION_FP16 && is_stale) {
    return failure_set_common(why, EXIT_SETUP,
                              "%s does not go with --precision fp16, as averages come later than "
                              "their step, when the scale of the loss is another one; take bf16",
                              word);
  }
  return 0;
}

static int check_serve(const training *self, failure *why) {
  if (self->served || !self->chosen->serve_weights) {
    return 0;
  }
  return failure_set_common(why, EXIT_SETUP,
                            "--serve weights needs servers: give a policy such as "
                            "\"algo=servers servers=0\"");
}

/* What a step that is skipped leaves in error feedback would be sent in the steps that follow, so
 * libcomm discards it. */
static int complete_policy(training *self, failure *why) {
  char policy[POLICY_SIZE];
  const char *given = lcomm_policy_string(whole_comm(self));
  if (check_serve(self, why)) {
    return -1;
  }
  if (policy_has_quorum(given) || policy_is_stale(given) || self->served) {
    return check_owners(self, why); /* ranks come to a step at different times, and undo none */
  }
  if (!policy_keeps_residuals(given) || policy_discards(given)) {
    return 0;
  }
  snprintf(policy, sizeof policy, "%s nonfinite=discard", given);
  return peers_check(self->comm, lcomm_policy_set(self->comm, policy), "completing the policy",
                     why);
}

int training_register(training *self, failure *why) {
  lcomm_comm *comm = gradients_comm(self);
  const char *policy = lcomm_policy_string(comm);
  lcomm_status status = lcomm_guard_set(comm, log_guard, self);
  if (peers_check(comm, status, "asking for the guard's figures", why)) {
    return -1;
  }
  self->late.is_stale = policy_is_stale(policy);
  self->late.may_be = policy_has_quorum(policy) || self->late.is_stale;
  self->discards = policy_keeps_residuals(policy) || self->late.may_be || self->served;
  int failed = is_sharded(self) ? shard_register(&self->shard, policy_compresses(policy), why)
                                : gradients_register(&self->gradients, comm, &self->net, why);
  return failed || training_scale(self, why) || training_publish(self, why) ? -1 : 0;
}

int training_set_up(training *self, failure *why) {
  if (peers_create(self->comm, &self->ranks)) {
    no_memory(why);
    lcomm_abort(self->comm, why->text);
    return -1;
  }
  if (why->exit_code == 0) {
    prepare(self, why);
  }
  if (peers_agree(&self->ranks, why) || complete_policy(self, why) || compare_data(self, why) ||
      (is_pipelined(self) && pipeline_connect(&self->pipe, &self->ranks, &self->net, why)) ||
      share_weights(self, why) || servers_share_weights(self, why)) {
    return -1;
  }
  return training_register(self, why) || resume_checkpoint(self, why) ? -1 : 0;
}

void training_tear_down(training *self) {
  free(self->order);
  free(self->labels);
  free(self->statistics);
  free(self->host);
  if (self->net.on) {
    self->net.on->free(self->sum);
    self->net.on->free(self->master);
  }
  gradients_free(&self->gradients);
  shard_destroy(&self->shard);
  pipeline_free(&self->pipe);
  optimizer_destroy(&self->optimizer);
  model_destroy(&self->net);
  task_free(&self->task);
  peers_destroy(&self->ranks);
}

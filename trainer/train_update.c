/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "trainer/train.h"

/* What follows the averages of a step.
 *
 *   gradients -> clip -> optimiser -> master weights float32 -> weights of the model
 *
 * The last arrow rounds to a precision of 16 bits, and brings the shards of all ranks together. */

int master_create(training *self) {
  if (!is_sharded(self) && self->net.precision == PRECISION_FP32) {
    return 0;
  }
  self->master = self->net.on->get(self->optimizer.count * sizeof(float) + 1);
  return self->master ? 0 : -1;
}

void master_begin(training *self, const float *weights) {
  const shard_plan *plan = &self->shard.plan;
  if (self->master && !is_sharded(self)) {
    self->net.on->write(self->master, weights, self->net.weight_count * sizeof *weights);
  }
  for (int i = 0; i < plan->bucket_count; i++) {
    const shard_bucket *at = &plan->buckets[i];
    self->net.on->write(self->master + at->at, weights + at->own_offset,
                        at->own_count * sizeof *weights);
  }
}

int training_publish(training *self, failure *why) {
  model *net = &self->net;
  if (is_sharded(self)) {
    return peers_check(self->comm, shard_gather(&self->shard, self->master),
                       "the all-gather of the weights", why);
  }
  if (self->master && net->on->stored != PRECISION_FP32) {
    net->on->encode(net->precision, self->master, 1.0f, (uint16_t *)net->weights,
                    net->weight_count);
  } else if (self->master) {
    net->on->copy(net->weights, self->master, net->weight_count * sizeof(float));
    net->on->round(net->precision, net->weights, net->weight_count);
  }
  return 0;
}

/* In the place of gradients: the policy has adam=. */
static bool momentum_has_arrived(lcomm_comm *comm) {
  int is_momentum = 0;
  return lcomm_tensors_momentum(comm, &is_momentum) == LCOMM_OK && is_momentum;
}

/* Servers have stepped them, and sent them in the place of averages. */
static void take_weights(training *self) {
  const model *net = &self->net;
  net->on->copy(net->weights, net->gradients, net->weight_count * sizeof(float));
}

static void step_weights(training *self, float rate) {
  float *weights = self->master ? self->master : self->net.weights;
  float *averages = self->net.gradients;
  if (is_sharded(self)) {
    averages = self->shard.gradients;
  } else {
    gradients_take(&self->gradients, self->scale.factor);
  }
  if (self->chosen->clip > 0.0f) {
    optimizer_clip(&self->optimizer, averages, self->chosen->clip);
  }
  if (self->optimizer.kind == OPTIMIZER_ONEBIT_ADAM && momentum_has_arrived(self->comm)) {
    optimizer_step_frozen(&self->optimizer, weights, averages, rate);
  } else {
    optimizer_step(&self->optimizer, weights, averages, rate);
  }
}

/* Only what libcomm remembers has to know. Shards send it gradients without a scale then. */
int training_scale(training *self, failure *why) {
  if (!self->discards || is_sharded(self)) {
    return 0;
  }
  return peers_check(self->comm, gradients_scale(&self->gradients, self->scale.factor),
                     "scaling the gradients", why);
}

/* The scale of the loss that the next step has. */
static int adapt_scale(training *self, bool skipped, failure *why) {
  float before = self->scale.factor;
  loss_scale_step(&self->scale, skipped);
  if (loss_scale_is_exhausted(&self->scale)) {
    return failure_set_common(why, EXIT_TRAINING,
                              "gradients overflow fp16 even with a loss scale of 1 (epoch %d, step "
                              "%llu): the training diverged; try --precision bf16, or a lower --lr "
                              "than %g",
                              self->epoch, (unsigned long long)self->step + 1,
                              (double)self->chosen->rate);
  }
  return self->scale.factor == before ? 0 : training_scale(self, why);
}

int training_update(training *self, float rate, bool spoilt, failure *why) {
  if (spoilt) {
    self->skipped++;
    return adapt_scale(self, true, why);
  }
  if (self->chosen->serve_weights) {
    take_weights(self);
  } else {
    step_weights(self, rate);
  }
  if (peers_check(self->comm, self->shard.status, "adding up norms", why) ||
      training_publish(self, why)) {
    return -1;
  }
  return adapt_scale(self, false, why);
}

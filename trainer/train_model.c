/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_model.h"

#include <libcomm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/train_random.h"

/* ------------------------------------------------------------------- memory
 * Parameters and gradients, then activations. */

static model_parameter *add_parameter(model *self, int of, const char *what, size_t count) {
  model_parameter *made = &self->parameters[self->parameter_count++];
  snprintf(made->name, sizeof made->name, "%s.%s", self->layers[of].name, what);
  made->offset = self->weight_count;
  made->count = count;
  made->layer = of;
  self->weight_count += count;
  return made;
}

/* In the order of backward: dense2.weight, dense2.bias, dense1.weight, ... */
static void list_parameters(model *self) {
  for (int i = self->layer_count - 1; i >= 0; i--) {
    const layer *at = &self->layers[i];
    if (at->weight_count > 0) {
      add_parameter(self, i, "weight", at->weight_count)->matrix = at->bound > 0.0f;
    }
    if (at->bias_count > 0) {
      add_parameter(self, i, "bias", at->bias_count)->bias = true;
    }
  }
}

static void tie(model *self) {
  layer *last = &self->layers[self->layer_count - 1];
  if (last->tied) {
    last->weight = self->layers[0].weight;
    last->weight_gradient = self->layers[0].weight_gradient;
  }
}

/* Let each layer view its part of the weights. */
static void hand_out_weights(model *self) {
  for (int i = 0; i < self->parameter_count; i++) {
    const model_parameter *of = &self->parameters[i];
    layer *at = &self->layers[of->layer];
    *(of->bias ? &at->bias : &at->weight) = self->weights + of->offset;
  }
  tie(self);
}

void model_gradients_at(model *self, int first, int count, float *place) {
  for (int i = first; i < first + count; i++) {
    const model_parameter *of = &self->parameters[i];
    layer *at = &self->layers[of->layer];
    *(of->bias ? &at->bias_gradient : &at->weight_gradient) =
        place + (of->offset - self->parameters[first].offset);
  }
  tie(self);
}

void model_gradients_elsewhere(model *self) {
  lcomm_memory_free(self->gradients);
  self->gradients = NULL;
}

size_t model_activation_bytes(const model *self) {
  size_t widest = 0, count = layer_shape_count(self->layers[0].in), scratch = 0;
  for (int i = 0; i < self->layer_count; i++) {
    size_t out = layer_shape_count(self->layers[i].out);
    widest = out > widest ? out : widest;
    count += out;
    scratch += self->layers[i].scratch_size;
  }
  return (count + 3 * widest) * (size_t)self->batch_max * sizeof(float) + scratch;
}

/* Means of 0 and variances of 1: statistics are pairs of equal halves. */
static void begin_statistics(layer *self) {
  size_t half = self->statistics_count / 2;
  for (size_t i = 0; i < half; i++) {
    self->statistics[i] = 0.0f;
    self->statistics[half + i] = 1.0f;
  }
}

static int allocate_statistics(model *self) {
  for (int i = 0; i < self->layer_count; i++) {
    self->statistics_count += self->layers[i].statistics_count;
  }
  float *next = self->statistics = malloc(self->statistics_count * sizeof(float) + 1);
  for (int i = 0; next && i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    at->statistics = next;
    begin_statistics(at);
    next += at->statistics_count;
  }
  return self->statistics ? 0 : -1;
}

static int allocate_parameters(model *self) {
  list_parameters(self);
  size_t size = self->weight_count * sizeof(float);
  void *gradients = NULL;
  self->weights = calloc(1, size);
  if (!self->weights || lcomm_memory_alloc(size, &gradients) != LCOMM_OK) {
    return -1;
  }
  self->gradients = gradients;
  hand_out_weights(self);
  model_gradients_at(self, 0, self->parameter_count, self->gradients);
  return 0;
}

static float *allocate_batch(const model *self, size_t count) {
  return malloc(count * (size_t)self->batch_max * sizeof(float));
}

static int allocate_activations(model *self) {
  size_t widest = 0;
  for (int i = 0; i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    size_t count = layer_shape_count(at->out);
    widest = count > widest ? count : widest;
    self->activations[i + 1] = allocate_batch(self, count);
    at->scratch = malloc(at->scratch_size + 1);
    if (!self->activations[i + 1] || !at->scratch) {
      return -1;
    }
  }
  self->activations[0] = allocate_batch(self, layer_shape_count(self->layers[0].in));
  self->deltas[0] = allocate_batch(self, widest);
  self->deltas[1] = allocate_batch(self, widest);
  self->skip_delta = allocate_batch(self, widest);
  return self->activations[0] && self->deltas[0] && self->deltas[1] && self->skip_delta ? 0 : -1;
}

static void join_skips(model *self) {
  for (int i = 0; i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    if (at->skip_from > 0) {
      at->skip = self->activations[at->skip_from];
      at->skip_delta = self->skip_delta;
    }
  }
}

int model_create(const char *name, layer_shape input, int classes, int batch_max, model *made) {
  memset(made, 0, sizeof *made);
  made->batch_max = batch_max;
  if (!model_chain(name, input, classes, made)) {
    return -1;
  }
  if (allocate_parameters(made) == 0 && allocate_statistics(made) == 0 &&
      allocate_activations(made) == 0) {
    join_skips(made);
    return 0;
  }
  model_destroy(made);
  return -1;
}

void model_destroy(model *self) {
  for (int i = 0; i < self->layer_count; i++) {
    free(self->layers[i].scratch);
  }
  for (int i = 0; i <= self->layer_count; i++) {
    free(self->activations[i]);
  }
  free(self->deltas[0]);
  free(self->deltas[1]);
  free(self->skip_delta);
  free(self->weights);
  free(self->statistics);
  lcomm_memory_free(self->gradients);
  memset(self, 0, sizeof *self);
}

void model_draw_weights(model *self, uint64_t seed) {
  for (int i = 0; i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    random_stream random = random_begin(seed, (uint64_t)i);
    for (size_t k = 0; k < at->weight_count; k++) {
      at->weight[k] = at->centre + random_between(&random, -at->bound, at->bound);
    }
    if (at->bias_count > 0) {
      memset(at->bias, 0, at->bias_count * sizeof(float));
    }
  }
}

/* ----------------------------------------------------- forward and backward
 *
 *   activations[0] -> layer 0 -> activations[1] -> layer 1 -> ... -> logits
 *        (none)    <- layer 0 <-   deltas[0]    <- layer 1 <- ... <- logits_delta
 *
 * Backward needs every activation, but only two deltas at a time: that of the
 * output of layer i is deltas[i % 2]. A layer that adds the input of layer s keeps the
 * gradient of that in skip_delta, until backward has come to layer s. Skips do not overlap. */

float *model_input(model *self) {
  return self->activations[0];
}

static size_t values_of(layer_shape shape, int batch) {
  return layer_shape_count(shape) * (size_t)batch;
}

const float *model_forward(model *self, int batch) {
  precision_round(self->precision, self->activations[0], values_of(self->layers[0].in, batch));
  for (int i = 0; i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    at->kind->forward(at, self->activations[i], self->activations[i + 1], batch);
    precision_round(self->precision, self->activations[i + 1], values_of(at->out, batch));
  }
  return self->activations[self->layer_count];
}

const float *model_infer(model *self, int batch) {
  precision_round(self->precision, self->activations[0], values_of(self->layers[0].in, batch));
  for (int i = 0; i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    const layer_kind *kind = at->kind;
    (kind->infer ? kind->infer : kind->forward)(at, self->activations[i], self->activations[i + 1],
                                                batch);
    precision_round(self->precision, self->activations[i + 1], values_of(at->out, batch));
  }
  return self->activations[self->layer_count];
}

float *model_logits_delta(model *self) {
  return self->deltas[(self->layer_count - 1) % 2];
}

static void add_to(float *restrict sum, const float *restrict more, size_t count) {
  for (size_t i = 0; i < count; i++) {
    sum[i] += more[i];
  }
}

void model_backward(model *self, int batch, model_ready *ready, void *context) {
  int first_parameter = 0;
  int skip = 0; /* skip_delta holds the gradient of the input of this layer; 0: of none */
  const layer *last = &self->layers[self->layer_count - 1];
  precision_round(self->precision, model_logits_delta(self), values_of(last->out, batch));
  for (int i = self->layer_count - 1; i >= 0; i--) {
    layer *at = &self->layers[i];
    float *in_delta = i > 0 ? self->deltas[(i - 1) % 2] : NULL;
    at->kind->backward(at, self->activations[i], self->activations[i + 1], self->deltas[i % 2],
                       in_delta, batch);
    if (skip > 0 && skip == i) {
      add_to(in_delta, self->skip_delta, values_of(at->in, batch));
      skip = 0;
    }
    if (in_delta) {
      precision_round(self->precision, in_delta, values_of(at->in, batch));
    }
    skip = at->skip_from > 0 ? at->skip_from : skip;
    int parameters = (at->weight_count > 0) + (at->bias_count > 0);
    if (parameters > 0) {
      ready(context, first_parameter, parameters);
      first_parameter += parameters;
    }
  }
}

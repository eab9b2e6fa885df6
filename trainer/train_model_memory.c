/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/train_model.h"

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
      add_parameter(self, i, "weight", at->weight_count)->rows = at->weight_rows;
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
    *(of->bias ? &at->bias : &at->weight) = element_at(self->on, self->weights, of->offset);
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
  self->on->free_sent(self->gradients);
  self->gradients = NULL;
}

/* What layers do not keep they share. */
static size_t scratch_of(const model *self) {
  size_t most = 0;
  for (int i = 0; i < self->layer_count; i++) {
    most = self->layers[i].scratch_count > most ? self->layers[i].scratch_count : most;
  }
  return most;
}

size_t model_activation_bytes(const model *self) {
  size_t widest = 0, count = layer_shape_count(self->layers[0].in);
  for (int i = 0; i < self->layer_count; i++) {
    size_t out = layer_shape_count(self->layers[i].out);
    widest = out > widest ? out : widest;
    count += out;
  }
  count *= (size_t)self->part.kept;
  return ((count + 3 * widest) * (size_t)self->batch_max + scratch_of(self)) *
         self->on->element_size;
}

/* Means of 0 and variances of 1: statistics are pairs of equal halves. */
static void begin_statistics(layer *self) {
  const float one = 1.0f;
  size_t half = self->statistics_count / 2;
  for (size_t i = 0; i < half; i++) {
    self->on->write(self->statistics + half + i, &one, sizeof one);
  }
}

void model_begin_statistics(model *self) {
  for (int i = 0; i < self->layer_count; i++) {
    begin_statistics(&self->layers[i]);
  }
}

static int allocate_statistics(model *self) {
  for (int i = 0; i < self->layer_count; i++) {
    self->statistics_count += self->layers[i].statistics_count;
  }
  float *next = self->statistics = self->on->get(self->statistics_count * sizeof(float) + 1);
  for (int i = 0; next && i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    at->statistics = next;
    next += at->statistics_count;
  }
  if (self->statistics) {
    model_begin_statistics(self);
  }
  return self->statistics ? 0 : -1;
}

static int allocate_parameters(model *self) {
  list_parameters(self);
  self->weights = self->on->get(self->weight_count * self->on->element_size);
  self->gradients = self->on->get_sent(self->weight_count * sizeof(float));
  if (!self->weights || !self->gradients) {
    return -1;
  }
  hand_out_weights(self);
  model_gradients_at(self, 0, self->parameter_count, self->gradients);
  return 0;
}

static element *allocate_batch(const model *self, size_t count) {
  return self->on->get(count * (size_t)self->batch_max * self->on->element_size);
}

/* Of one mini-batch that is kept. */
static int allocate_kept(const model *self, element **activations) {
  activations[0] = allocate_batch(self, layer_shape_count(self->layers[0].in));
  for (int i = 0; activations[i] && i < self->layer_count; i++) {
    activations[i + 1] = allocate_batch(self, layer_shape_count(self->layers[i].out));
  }
  return activations[self->layer_count] ? 0 : -1;
}

static int allocate_all_kept(model *self) {
  self->kept = calloc((size_t)self->part.kept, sizeof *self->kept);
  for (int i = 0; self->kept && i < self->part.kept; i++) {
    if (allocate_kept(self, self->kept[i])) {
      return -1;
    }
  }
  return self->kept ? 0 : -1;
}

static int allocate_activations(model *self) {
  size_t widest = 0, first = layer_shape_count(self->layers[0].in);
  self->scratch = self->on->get(scratch_of(self) * self->on->element_size + 1);
  for (int i = 0; i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    size_t count = layer_shape_count(at->out);
    widest = count > widest ? count : widest;
    at->scratch = self->scratch;
  }
  if (allocate_all_kept(self)) {
    return -1;
  }
  self->input = self->on->is_host ? self->kept[0][0]
                                  : malloc(first * (size_t)self->batch_max * sizeof(float));
  self->deltas[0] = allocate_batch(self, widest);
  self->deltas[1] = allocate_batch(self, widest);
  self->skip_delta = allocate_batch(self, widest);
  return self->input && self->deltas[0] && self->deltas[1] && self->skip_delta && self->scratch
             ? 0
             : -1;
}

static void join_skips(model *self) {
  for (int i = 0; i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    if (at->skip_back > 0) {
      at->skip = self->activations[i - at->skip_back];
      at->skip_delta = self->skip_delta;
    }
  }
}

void model_turn_to(model *self, int number) {
  memcpy(self->activations, self->kept[number], sizeof self->activations);
  if (self->on->is_host) {
    self->input = self->activations[0];
  }
  join_skips(self);
}

int model_create(const char *name, layer_shape input, int classes, int batch_max, model *made) {
  return model_create_on(backend_cpu(), name, input, classes, batch_max, made);
}

int model_create_on(const backend *on, const char *name, layer_shape input, int classes,
                    int batch_max, model *made) {
  return model_create_part(on, name, input, classes, batch_max, MODEL_WHOLE, made);
}

int model_create_part(const backend *on, const char *name, layer_shape input, int classes,
                      int batch_max, model_part part, model *made) {
  memset(made, 0, sizeof *made);
  made->on = on;
  made->batch_max = batch_max;
  made->part = part;
  if (!model_chain(name, input, classes, made) || !model_cut(made, model_blocks(name), part)) {
    return -1;
  }
  for (int i = 0; i < made->layer_count; i++) {
    made->layers[i].on = on;
  }
  if (allocate_parameters(made) == 0 && allocate_statistics(made) == 0 &&
      allocate_activations(made) == 0) {
    model_turn_to(made, 0);
    return 0;
  }
  model_destroy(made);
  return -1;
}

void model_destroy(model *self) {
  const backend *on = self->on;
  if (!on) {
    return;
  }
  if (!on->is_host) {
    free(self->input);
  }
  for (int i = 0; self->kept && i < self->part.kept; i++) {
    for (int k = 0; k <= self->layer_count; k++) {
      on->free(self->kept[i][k]);
    }
  }
  free(self->kept);
  void *others[] = {self->deltas[0], self->deltas[1],  self->skip_delta,
                    self->weights,   self->statistics, self->scratch};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    on->free(others[i]);
  }
  on->free_sent(self->gradients);
  memset(self, 0, sizeof *self);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_model.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/train_random.h"

static void draw_layer(const layer *of, random_stream random, float *weights) {
  for (size_t k = 0; k < of->weight_count; k++) {
    weights[k] = of->centre + random_between(&random, -of->bound, of->bound);
  }
}

void model_draw(const model *self, uint64_t seed, float *weights) {
  memset(weights, 0, self->weight_count * sizeof *weights);
  for (int i = 0; i < self->parameter_count; i++) {
    const model_parameter *at = &self->parameters[i];
    if (!at->bias) {
      draw_layer(&self->layers[at->layer],
                 random_begin(seed, (uint64_t)self->layers[at->layer].number),
                 weights + at->offset);
    }
  }
}

int model_draw_weights(model *self, uint64_t seed) {
  float *drawn = malloc(self->weight_count * sizeof *drawn);
  if (drawn) {
    model_draw(self, seed, drawn);
    self->on->store(self->weights, drawn, self->weight_count);
  }
  free(drawn);
  return drawn ? 0 : -1;
}

/* ----------------------------------------------------- forward and backward
 *
 *   activations[0] -> layer 0 -> activations[1] -> layer 1 -> ... -> logits
 *        (none)    <- layer 0 <-   deltas[0]    <- layer 1 <- ... <- logits_delta
 *
 * Backward needs every activation, but only two deltas at a time: that of the
 * output of layer i is deltas[i % 2]. A layer that adds the input of layer s keeps the
 * gradient of that in skip_delta, until backward has come to layer s. Skips do not overlap.
 * Where the stage before wants it, the gradient of the input of layer 0 is made, too. */

float *model_input(model *self) {
  return self->input;
}

static size_t values_of(layer_shape shape, int batch) {
  return layer_shape_count(shape) * (size_t)batch;
}

/* A back end that stores the precision has rounded already. */
static void round_to(const model *self, element *values, size_t count) {
  if (self->on->stored == PRECISION_FP32) {
    self->on->round(self->precision, values, count);
  }
}

static void take_input(const model *self, int batch) {
  size_t count = values_of(self->layers[0].in, batch);
  self->on->store(self->activations[0], self->input, count);
  round_to(self, self->activations[0], count);
}

const element *model_forward(model *self, int batch) {
  take_input(self, batch);
  for (int i = 0; i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    at->kind->forward(at, self->activations[i], self->activations[i + 1], batch);
    round_to(self, self->activations[i + 1], values_of(at->out, batch));
  }
  return self->activations[self->layer_count];
}

const element *model_infer(model *self, int batch) {
  take_input(self, batch);
  for (int i = 0; i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    const layer_kind *kind = at->kind;
    (kind->infer ? kind->infer : kind->forward)(at, self->activations[i], self->activations[i + 1],
                                                batch);
    round_to(self, self->activations[i + 1], values_of(at->out, batch));
  }
  return self->activations[self->layer_count];
}

static void ignore_ready(void *context, int first, int count) {
  (void)context;
  (void)first;
  (void)count;
}

void model_rehearse(model *self) {
  int batch = self->batch_max;
  size_t logits = values_of(self->layers[self->layer_count - 1].out, batch);
  memset(self->input, 0, values_of(self->layers[0].in, batch) * sizeof(float));
  model_forward(self, batch);
  self->on->clear(model_logits_delta(self), logits * self->on->element_size);
  model_backward(self, batch, ignore_ready, NULL);
  model_begin_statistics(self);
  self->on->finish();
}

element *model_logits_delta(model *self) {
  return self->deltas[(self->layer_count - 1) % 2];
}

element *model_input_delta(model *self) {
  return self->deltas[1];
}

void model_backward(model *self, int batch, model_ready *ready, void *context) {
  int first_parameter = 0;
  int skip = -1; /* skip_delta holds the gradient of the input of this layer; -1: of none */
  const layer *last = &self->layers[self->layer_count - 1];
  round_to(self, model_logits_delta(self), values_of(last->out, batch));
  for (int i = self->layer_count - 1; i >= 0; i--) {
    layer *at = &self->layers[i];
    element *in_delta = i > 0 || self->part.stage > 0 ? self->deltas[(i + 1) % 2] : NULL;
    at->kind->backward(at, self->activations[i], self->activations[i + 1], self->deltas[i % 2],
                       in_delta, batch);
    if (skip == i) {
      self->on->add(in_delta, self->skip_delta, in_delta, values_of(at->in, batch));
      skip = -1;
    }
    if (in_delta) {
      round_to(self, in_delta, values_of(at->in, batch));
    }
    skip = at->skip_back > 0 ? i - at->skip_back : skip;
    int parameters = (at->weight_count > 0) + (at->bias_count > 0);
    if (parameters > 0) {
      ready(context, first_parameter, parameters);
      first_parameter += parameters;
    }
  }
}

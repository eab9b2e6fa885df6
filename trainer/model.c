/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/model.h"

#include <libcomm.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/random.h"

/* A chain of layers under construction: every layer's input is the last output. */
static void chain(model *self, layer next) {
  self->layers[self->layer_count++] = next;
}

static layer_shape chain_end(const model *self) {
  return self->layers[self->layer_count - 1].out;
}

/* Pooling before relu gives the same values as after it, with a quarter of
 * the work. */
static void build_cnn(model *self, layer_shape input, int classes) {
  chain(self, conv_layer("conv1", input, 16));
  chain(self, pool_layer(chain_end(self)));
  chain(self, relu_layer(chain_end(self)));
  chain(self, conv_layer("conv2", chain_end(self), 32));
  chain(self, pool_layer(chain_end(self)));
  chain(self, relu_layer(chain_end(self)));
  chain(self, flatten_layer(chain_end(self)));
  chain(self, dense_layer("dense1", chain_end(self), 128));
  chain(self, relu_layer(chain_end(self)));
  chain(self, dense_layer("dense2", chain_end(self), classes));
}

static void build_mlp(model *self, layer_shape input, int classes) {
  chain(self, dense_layer("dense1", input, 256));
  chain(self, relu_layer(chain_end(self)));
  chain(self, dense_layer("dense2", chain_end(self), 128));
  chain(self, relu_layer(chain_end(self)));
  chain(self, dense_layer("dense3", chain_end(self), classes));
}

typedef struct recipe {
  const char *name;
  const char *words;
  void (*build)(model *self, layer_shape input, int classes);
} recipe;

static const recipe recipes[] = {
    {"cnn", "convolutional network: 3x3x16, pool, 3x3x32, pool, dense 128, dense 10", build_cnn},
    {"mlp", "multi-layer perceptron: dense 256, dense 128, dense 10", build_mlp},
};
enum { RECIPES = sizeof recipes / sizeof recipes[0] };

static const recipe *find_recipe(const char *name) {
  for (int i = 0; i < RECIPES; i++) {
    if (strcmp(recipes[i].name, name) == 0) {
      return &recipes[i];
    }
  }
  return NULL;
}

const char *model_names(void) {
  return "cnn, mlp";
}

const char *model_describe(const char *name) {
  const recipe *found = find_recipe(name);
  return found ? found->words : NULL;
}

static size_t add_parameter(model *self, const char *layer_name, const char *what, size_t count) {
  model_parameter *made = &self->parameters[self->parameter_count++];
  snprintf(made->name, sizeof made->name, "%s.%s", layer_name, what);
  made->offset = self->weight_count;
  made->count = count;
  self->weight_count += count;
  return made->offset;
}

static void list_parameters(model *self, size_t *weight_offset, size_t *bias_offset) {
  for (int i = self->layer_count - 1; i >= 0; i--) {
    const layer *at = &self->layers[i];
    if (!at->name) {
      continue;
    }
    weight_offset[i] = add_parameter(self, at->name, "weight", at->weight_count);
    bias_offset[i] = add_parameter(self, at->name, "bias", at->bias_count);
  }
}

static int allocate_layers(model *self) {
  size_t widest = 0;
  for (int i = 0; i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    if (at->scratch_size > 0 && !(at->scratch = malloc(at->scratch_size))) {
      return -1;
    }
    size_t count = layer_shape_count(at->out);
    self->activations[i + 1] = malloc(count * (size_t)self->batch_max * sizeof(float));
    if (!self->activations[i + 1]) {
      return -1;
    }
    widest = count > widest ? count : widest;
  }
  size_t in_count = layer_shape_count(self->layers[0].in);
  self->activations[0] = malloc(in_count * (size_t)self->batch_max * sizeof(float));
  self->deltas[0] = malloc(widest * (size_t)self->batch_max * sizeof(float));
  self->deltas[1] = malloc(widest * (size_t)self->batch_max * sizeof(float));
  return self->activations[0] && self->deltas[0] && self->deltas[1] ? 0 : -1;
}

static int allocate_parameters(model *self) {
  size_t weight_offset[MODEL_LAYERS_MAX], bias_offset[MODEL_LAYERS_MAX];
  list_parameters(self, weight_offset, bias_offset);
  self->weights = calloc(self->weight_count, sizeof(float));
  void *gradients = NULL;
  if (!self->weights ||
      lcomm_memory_alloc(self->weight_count * sizeof(float), &gradients) != LCOMM_OK) {
    return -1;
  }
  self->gradients = gradients;
  for (int i = 0; i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    if (!at->name) {
      continue;
    }
    at->weight = self->weights + weight_offset[i];
    at->bias = self->weights + bias_offset[i];
    at->weight_gradient = self->gradients + weight_offset[i];
    at->bias_gradient = self->gradients + bias_offset[i];
  }
  return 0;
}

int model_create(const char *name, layer_shape input, int classes, int batch_max, model *made) {
  memset(made, 0, sizeof *made);
  const recipe *found = find_recipe(name);
  if (!found) {
    return -1;
  }
  made->batch_max = batch_max;
  made->classes = classes;
  found->build(made, input, classes);
  if (allocate_parameters(made) == 0 && allocate_layers(made) == 0) {
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
  free(self->weights);
  lcomm_memory_free(self->gradients);
  memset(self, 0, sizeof *self);
}

void model_draw_weights(model *self, uint64_t seed) {
  for (int i = 0; i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    if (!at->name) {
      continue;
    }
    random_stream random = random_begin(seed, (uint64_t)i);
    float bound = sqrtf(6.0f / (float)at->fan_in);
    for (size_t k = 0; k < at->weight_count; k++) {
      at->weight[k] = random_between(&random, -bound, bound);
    }
    memset(at->bias, 0, at->bias_count * sizeof(float));
  }
}

float *model_input(model *self) {
  return self->activations[0];
}

const float *model_forward(model *self, int batch) {
  for (int i = 0; i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    at->kind->forward(at, self->activations[i], self->activations[i + 1], batch);
  }
  return self->activations[self->layer_count];
}

/* deltas[i % 2] is the gradient of the output of layer i. */
float *model_logits_delta(model *self) {
  return self->deltas[(self->layer_count - 1) % 2];
}

void model_backward(model *self, int batch, model_ready *ready, void *context) {
  int first_parameter = 0;
  for (int i = self->layer_count - 1; i >= 0; i--) {
    layer *at = &self->layers[i];
    float *in_delta = i > 0 ? self->deltas[(i - 1) % 2] : NULL;
    at->kind->backward(at, self->activations[i], self->activations[i + 1], self->deltas[i % 2],
                       in_delta, batch);
    if (!at->name) {
      continue;
    }
    ready(context, first_parameter, 2);
    first_parameter += 2;
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_model.h"

#include <libcomm.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/train_random.h"

/* --------------------------------------------------------------- the models
 * The shapes are those of Fashion-MNIST: images of 28x28 pixels, 10 classes. */

/* Append a layer; returns the shape of its output. */
static layer_shape chain(model *self, layer next) {
  self->layers[self->layer_count++] = next;
  return next.out;
}

/* Pooling before relu gives the same values as after it, with a quarter of
 * the work. The input is [1][B][28][28]. */
static void build_cnn(model *self, layer_shape at, int classes) {
  at = chain(self, conv_layer("conv1", at, 16));    /* [16][B][28][28], weight [16][9] */
  at = chain(self, pool_layer(at));                 /* [16][B][14][14] */
  at = chain(self, relu_layer(at));                 /* [16][B][14][14] */
  at = chain(self, conv_layer("conv2", at, 32));    /* [32][B][14][14], weight [32][144] */
  at = chain(self, pool_layer(at));                 /* [32][B][7][7] */
  at = chain(self, relu_layer(at));                 /* [32][B][7][7] */
  at = chain(self, flatten_layer(at));              /* [B][1568] */
  at = chain(self, dense_layer("dense1", at, 128)); /* [B][128], weight [128][1568] */
  at = chain(self, relu_layer(at));                 /* [B][128] */
  chain(self, dense_layer("dense2", at, classes));  /* [B][10], weight [10][128] */
}

/* With one channel [1][B][28][28] is [B][784]. */
static void build_mlp(model *self, layer_shape at, int classes) {
  at = chain(self, dense_layer("dense1", at, 256)); /* [B][256], weight [256][784] */
  at = chain(self, relu_layer(at));                 /* [B][256] */
  at = chain(self, dense_layer("dense2", at, 128)); /* [B][128], weight [128][256] */
  at = chain(self, relu_layer(at));                 /* [B][128] */
  chain(self, dense_layer("dense3", at, classes));  /* [B][10], weight [10][128] */
}

typedef struct recipe {
  const char *name;
  const char *words;
  void (*build)(model *self, layer_shape at, int classes);
} recipe;

static const recipe recipes[] = {
    {"cnn", "convolutional network: 3x3x16, pool, 3x3x32, pool, dense 128, dense 10", build_cnn},
    {"mlp", "multi-layer perceptron: dense 256, dense 128, dense 10", build_mlp},
};

static const recipe *find_recipe(const char *name) {
  for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
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

/* ------------------------------------------------------------------- memory
 * Parameters and gradients, then activations. */

static void add_parameter(model *self, const char *layer_name, const char *what, size_t count) {
  model_parameter *made = &self->parameters[self->parameter_count++];
  snprintf(made->name, sizeof made->name, "%s.%s", layer_name, what);
  made->offset = self->weight_count;
  made->count = count;
  self->weight_count += count;
}

/* In the order of backward: dense2.weight, dense2.bias, dense1.weight, ... */
static void list_parameters(model *self) {
  for (int i = self->layer_count - 1; i >= 0; i--) {
    const layer *at = &self->layers[i];
    if (at->name) {
      add_parameter(self, at->name, "weight", at->weight_count);
      add_parameter(self, at->name, "bias", at->bias_count);
    }
  }
}

/* Let each layer view its part of the two vectors. */
static void hand_out_parameters(model *self) {
  const model_parameter *next = self->parameters;
  for (int i = self->layer_count - 1; i >= 0; i--) {
    layer *at = &self->layers[i];
    if (!at->name) {
      continue;
    }
    at->weight = self->weights + next[0].offset;
    at->weight_gradient = self->gradients + next[0].offset;
    at->bias = self->weights + next[1].offset;
    at->bias_gradient = self->gradients + next[1].offset;
    next += 2;
  }
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
  hand_out_parameters(self);
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
  return self->activations[0] && self->deltas[0] && self->deltas[1] ? 0 : -1;
}

int model_create(const char *name, layer_shape input, int classes, int batch_max, model *made) {
  memset(made, 0, sizeof *made);
  const recipe *found = find_recipe(name);
  if (!found) {
    return -1;
  }
  made->batch_max = batch_max;
  found->build(made, input, classes);
  if (allocate_parameters(made) == 0 && allocate_activations(made) == 0) {
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

/* ----------------------------------------------------- forward and backward
 *
 *   activations[0] -> layer 0 -> activations[1] -> layer 1 -> ... -> logits
 *        (none)    <- layer 0 <-   deltas[0]    <- layer 1 <- ... <- logits_delta
 *
 * Backward needs every activation, but only two deltas at a time: that of the
 * output of layer i is deltas[i % 2]. */

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

/* -------------------------------------------------------------------- loss */

static int index_of_largest(const float *values, int count) {
  int best = 0;
  for (int i = 1; i < count; i++) {
    if (values[i] > values[best]) {
      best = i;
    }
  }
  return best;
}

/* log(sum(exp(logit))), moved by the largest so that exp cannot overflow */
static float log_sum_exp(const float *logits, int classes) {
  float largest = logits[index_of_largest(logits, classes)];
  float sum = expf(logits[0] - largest);
  for (int i = 1; i < classes; i++) {
    sum += expf(logits[i] - largest);
  }
  return largest + logf(sum);
}

double loss_cross_entropy(const float *logits, const uint8_t *labels, int batch, int classes,
                          float *delta) {
  double loss = 0.0;
  float share = 1.0f / (float)batch;
  for (int image = 0; image < batch; image++) {
    const float *row = logits + (long)image * classes;
    float total = log_sum_exp(row, classes);
    loss += (double)(total - row[labels[image]]);
    if (!delta) {
      continue;
    }
    float *out = delta + (long)image * classes;
    for (int i = 0; i < classes; i++) {
      out[i] = share * expf(row[i] - total);
    }
    out[labels[image]] -= share;
  }
  return loss;
}

int loss_count_correct(const float *logits, const uint8_t *labels, int batch, int classes) {
  int correct = 0;
  for (int image = 0; image < batch; image++) {
    correct += index_of_largest(logits + (long)image * classes, classes) == labels[image];
  }
  return correct;
}

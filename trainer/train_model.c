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

/* What norm moves needs no bias. */
static layer bare_conv(const char *name, layer_shape at, int channels) {
  layer made = conv_layer(name, at, channels);
  made.bias_count = 0;
  return made;
}

/* x = relu(x + norm(conv(relu(norm(conv(x)))))), He et al., 2016 */
static layer_shape chain_residual(model *self, const char *const names[4], layer_shape at) {
  int skip = self->layer_count, channels = at.channels;
  at = chain(self, bare_conv(names[0], at, channels));
  at = chain(self, batch_norm_layer(names[1], at));
  at = chain(self, relu_layer(at));
  at = chain(self, bare_conv(names[2], at, channels));
  at = chain(self, batch_norm_layer(names[3], at));
  at = chain(self, add_layer(at, skip));
  return chain(self, relu_layer(at));
}

static void build_resnet(model *self, layer_shape at, int classes) {
  static const char *const first[] = {"block1.conv1", "block1.norm1", "block1.conv2",
                                      "block1.norm2"};
  static const char *const second[] = {"block2.conv1", "block2.norm1", "block2.conv2",
                                       "block2.norm2"};
  at = chain(self, bare_conv("conv1", at, 16));    /* [16][B][28][28] */
  at = chain(self, batch_norm_layer("norm1", at)); /* [16][B][28][28] */
  at = chain(self, pool_layer(at));                /* [16][B][14][14] */
  at = chain(self, relu_layer(at));                /* [16][B][14][14] */
  at = chain_residual(self, first, at);            /* [16][B][14][14] */
  at = chain(self, bare_conv("conv2", at, 32));    /* [32][B][14][14] */
  at = chain(self, batch_norm_layer("norm2", at)); /* [32][B][14][14] */
  at = chain(self, pool_layer(at));                /* [32][B][7][7] */
  at = chain(self, relu_layer(at));                /* [32][B][7][7] */
  at = chain_residual(self, second, at);           /* [32][B][7][7] */
  at = chain(self, average_layer(at));             /* [B][32] */
  chain(self, dense_layer("dense", at, classes));  /* [B][10] */
}

/* Weights of GPT-2 begin with a deviation of 0.02; those that write to the path that skips layers
 * smaller, so that its variance does not grow with the number of blocks. */
#define GPT_BOUND (0.02f * 1.7320508f)

typedef struct gpt_size {
  int blocks, heads, channels, context;
} gpt_size;

static layer gpt_linear(int block, const char *what, layer_shape at, int features, float bound) {
  char name[LAYER_NAME_SIZE];
  snprintf(name, sizeof name, "block%d.%s", block, what);
  layer made = linear_layer(name, at, features);
  made.bound = bound;
  return made;
}

static layer gpt_norm(int block, const char *what, layer_shape at) {
  char name[LAYER_NAME_SIZE];
  snprintf(name, sizeof name, "block%d.%s", block, what);
  return layer_norm_layer(name, at);
}

/* x = x + attention(norm(x)); x = x + mlp(norm(x)). All activations are [B][T][...]. */
static layer_shape chain_block(model *self, gpt_size size, int block, layer_shape at) {
  int channels = size.channels, skip = self->layer_count;
  float small = GPT_BOUND / sqrtf(2.0f * (float)size.blocks);
  at = chain(self, gpt_norm(block, "norm1", at));                          /* [C] */
  at = chain(self, gpt_linear(block, "qkv", at, 3 * channels, GPT_BOUND)); /* [3*C] */
  at = chain(self, attention_layer(at, size.heads));                       /* [C] */
  at = chain(self, gpt_linear(block, "project", at, channels, small));     /* [C] */
  at = chain(self, add_layer(at, skip));                                   /* [C] */
  skip = self->layer_count;
  at = chain(self, gpt_norm(block, "norm2", at));                           /* [C] */
  at = chain(self, gpt_linear(block, "mlp1", at, 4 * channels, GPT_BOUND)); /* [4*C] */
  at = chain(self, gelu_layer(at));                                         /* [4*C] */
  at = chain(self, gpt_linear(block, "mlp2", at, channels, small));         /* [C] */
  return chain(self, add_layer(at, skip));                                  /* [C] */
}

/* The input is [B][T], bytes as numbers. */
static void build_gpt(model *self, gpt_size size, layer_shape at, int classes) {
  at = chain(self, embedding_layer("embedding", at, size.channels)); /* [B][T][C] */
  self->layers[0].bound = GPT_BOUND;
  at = chain(self, position_layer("position", at)); /* [B][T][C] */
  self->layers[1].bound = GPT_BOUND;
  for (int block = 0; block < size.blocks; block++) {
    at = chain_block(self, size, block, at);
  }
  at = chain(self, layer_norm_layer("norm", at)); /* [B][T][C] */
  chain(self, tied_head_layer(at, classes));      /* [B][T][256] */
}

typedef struct recipe {
  const char *name;
  const char *words;
  void (*build)(model *self, layer_shape at, int classes); /* of images; NULL: a gpt */
  gpt_size size;
} recipe;

static const recipe recipes[] = {
    {"cnn",
     "convolutional network: 3x3x16, pool, 3x3x32, pool, dense 128, dense 10",
     build_cnn,
     {0}},
    {"mlp", "multi-layer perceptron: dense 256, dense 128, dense 10", build_mlp, {0}},
    {"resnet",
     "residual network: 3x3x16, 2 x 3x3x16, 3x3x32, 2 x 3x3x32, batch norm, mean; dense 10",
     build_resnet,
     {0}},
    {"gpt-nano",
     "transformer: 4 blocks of 128 channels, 4 heads, windows of 64 bytes",
     NULL,
     {4, 4, 128, 64}},
    {"gpt-micro",
     "transformer: 6 blocks of 192 channels, 6 heads, windows of 128 bytes",
     NULL,
     {6, 6, 192, 128}},
    {"gpt-mini",
     "transformer: 6 blocks of 384 channels, 6 heads, windows of 256 bytes",
     NULL,
     {6, 6, 384, 256}},
    {"gpt-124m",
     "transformer of the shape of GPT-2: 12 blocks of 768 channels, 12 heads, windows of 1024 "
     "bytes",
     NULL,
     {12, 12, 768, 1024}},
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
  return "cnn, mlp, resnet, gpt-nano, gpt-micro, gpt-mini, gpt-124m";
}

const char *model_describe(const char *name) {
  const recipe *found = find_recipe(name);
  return found ? found->words : NULL;
}

int model_context(const char *name) {
  const recipe *found = find_recipe(name);
  return found ? found->size.context : 0;
}

/* ------------------------------------------------------------------- memory
 * Parameters and gradients, then activations. */

static model_parameter *add_parameter(model *self, const char *layer_name, const char *what,
                                      size_t count) {
  model_parameter *made = &self->parameters[self->parameter_count++];
  snprintf(made->name, sizeof made->name, "%s.%s", layer_name, what);
  made->offset = self->weight_count;
  made->count = count;
  self->weight_count += count;
  return made;
}

/* In the order of backward: dense2.weight, dense2.bias, dense1.weight, ... */
static void list_parameters(model *self) {
  for (int i = self->layer_count - 1; i >= 0; i--) {
    const layer *at = &self->layers[i];
    if (at->weight_count > 0) {
      add_parameter(self, at->name, "weight", at->weight_count)->matrix = at->bound > 0.0f;
    }
    if (at->bias_count > 0) {
      add_parameter(self, at->name, "bias", at->bias_count);
    }
  }
}

/* Let each layer view its part of the two vectors. */
static void hand_out_parameters(model *self) {
  const model_parameter *next = self->parameters;
  for (int i = self->layer_count - 1; i >= 0; i--) {
    layer *at = &self->layers[i];
    if (at->weight_count > 0) {
      at->weight = self->weights + next->offset;
      at->weight_gradient = self->gradients + next->offset;
      next++;
    }
    if (at->bias_count > 0) {
      at->bias = self->weights + next->offset;
      at->bias_gradient = self->gradients + next->offset;
      next++;
    }
  }
  layer *last = &self->layers[self->layer_count - 1];
  if (last->tied) {
    last->weight = self->layers[0].weight;
    last->weight_gradient = self->layers[0].weight_gradient;
  }
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

static bool is_window(layer_shape input, int context) {
  return input.channels == 1 && input.height == context && input.width == 1;
}

int model_create(const char *name, layer_shape input, int classes, int batch_max, model *made) {
  memset(made, 0, sizeof *made);
  const recipe *found = find_recipe(name);
  if (!found || (found->size.context > 0 && !is_window(input, found->size.context))) {
    return -1;
  }
  made->batch_max = batch_max;
  if (found->build) {
    found->build(made, input, classes);
  } else {
    build_gpt(made, found->size, input, classes);
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

const float *model_forward(model *self, int batch) {
  for (int i = 0; i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    at->kind->forward(at, self->activations[i], self->activations[i + 1], batch);
  }
  return self->activations[self->layer_count];
}

const float *model_infer(model *self, int batch) {
  for (int i = 0; i < self->layer_count; i++) {
    layer *at = &self->layers[i];
    const layer_kind *kind = at->kind;
    (kind->infer ? kind->infer : kind->forward)(at, self->activations[i], self->activations[i + 1],
                                                batch);
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
  for (int i = self->layer_count - 1; i >= 0; i--) {
    layer *at = &self->layers[i];
    float *in_delta = i > 0 ? self->deltas[(i - 1) % 2] : NULL;
    at->kind->backward(at, self->activations[i], self->activations[i + 1], self->deltas[i % 2],
                       in_delta, batch);
    if (skip > 0 && skip == i) {
      add_to(in_delta, self->skip_delta, layer_shape_count(at->in) * (size_t)batch);
      skip = 0;
    }
    skip = at->skip_from > 0 ? at->skip_from : skip;
    int parameters = (at->weight_count > 0) + (at->bias_count > 0);
    if (parameters > 0) {
      ready(context, first_parameter, parameters);
      first_parameter += parameters;
    }
  }
}

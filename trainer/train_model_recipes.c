/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trainer/train_model.h"

/* --------------------------------------------------------------- the models
 * The shapes are those of Fashion-MNIST: images of 28x28 pixels, 10 classes. */

/* Append a layer; returns the shape of its output. */
static layer_shape chain(model *self, layer next) {
  next.number = self->layer_count;
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
  at = chain(self, add_layer(at, self->layer_count - skip));
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
  at = chain(self, add_layer(at, self->layer_count - skip));               /* [C] */
  skip = self->layer_count;
  at = chain(self, gpt_norm(block, "norm2", at));                           /* [C] */
  at = chain(self, gpt_linear(block, "mlp1", at, 4 * channels, GPT_BOUND)); /* [4*C] */
  at = chain(self, gelu_layer(at));                                         /* [4*C] */
  at = chain(self, gpt_linear(block, "mlp2", at, channels, small));         /* [C] */
  return chain(self, add_layer(at, self->layer_count - skip));              /* [C] */
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

static bool is_window(layer_shape input, int context) {
  return input.channels == 1 && input.height == context && input.width == 1;
}

int model_blocks(const char *name) {
  const recipe *found = find_recipe(name);
  return found ? found->size.blocks : 0;
}

bool model_chain(const char *name, layer_shape input, int classes, model *made) {
  const recipe *found = find_recipe(name);
  if (!found || (found->size.context > 0 && !is_window(input, found->size.context))) {
    return false;
  }
  if (found->build) {
    found->build(made, input, classes);
  } else {
    build_gpt(made, found->size, input, classes);
  }
  return true;
}

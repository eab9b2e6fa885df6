/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_MODEL_H
#define TRAINER_TRAIN_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* A model is a chain of layers from images to logits. Shapes are written as
 * [channel][image][row][column], B is the number of images of a mini-batch. */

/* ------------------------------------------------------------------ layers
 * A layer turns a mini-batch of activations into another one.
 *
 * Images are stored channel by channel, [channel][B][row][column], so a
 * convolution over the whole mini-batch is one matrix product and writes its
 * result in place. After flatten_layer() a mini-batch is [B][feature].
 *
 * Parameters and their gradients belong to the model; a layer views them. */

typedef struct layer_shape {
  int channels;
  int height;
  int width;
} layer_shape;

static inline size_t layer_shape_count(layer_shape shape) {
  return (size_t)shape.channels * (size_t)shape.height * (size_t)shape.width;
}

typedef struct layer layer;

typedef struct layer_kind {
  void (*forward)(layer *self, const float *in, float *out, int batch);
  /* Writes the parameters' gradients, and in_delta unless it is NULL (nobody
   * needs the gradient of the input of the first layer). */
  void (*backward)(layer *self, const float *in, const float *out, const float *out_delta,
                   float *in_delta, int batch);
} layer_kind;

struct layer {
  const layer_kind *kind;
  const char *name; /* of its parameters; NULL for a layer that has none */
  layer_shape in;   /* of one image */
  layer_shape out;
  size_t weight_count;
  size_t bias_count;
  int fan_in; /* inputs of one output, scales the first weights */
  float *weight;
  float *bias;
  float *weight_gradient;
  float *bias_gradient;
  size_t scratch_size; /* bytes, whatever the mini-batch; 0: none */
  void *scratch;       /* not kept from one call to the next */
};

/* 3x3 convolution with a border of zeros:
 * [in.channels][B][height][width] to [channels][B][height][width] */
layer conv_layer(const char *name, layer_shape in, int channels);

/* Every output sees every input: [B][in] to [B][features] */
layer dense_layer(const char *name, layer_shape in, int features);

/* Largest of each 2x2 square, an odd last row or column is dropped:
 * [channel][B][height][width] to [channel][B][height/2][width/2] */
layer pool_layer(layer_shape in);

/* max(0, x), any shape */
layer relu_layer(layer_shape in);

/* [channel][B][height][width] to [B][channel*height*width] */
layer flatten_layer(layer_shape in);

/* -------------------------------------------------------------------- loss */

/* Softmax cross-entropy of a mini-batch, logits [B][class].
 * Returns the sum over the images, not finite if a logit is not. delta, unless
 * NULL, receives the gradient of the mean over the images, [B][class]. */
double loss_cross_entropy(const float *logits, const uint8_t *labels, int batch, int classes,
                          float *delta);

/* How many images have their largest logit at their label. */
int loss_count_correct(const float *logits, const uint8_t *labels, int batch, int classes);

/* ------------------------------------------------------------------- model */

enum { MODEL_LAYERS_MAX = 16, MODEL_PARAMETERS_MAX = 16, MODEL_NAME_SIZE = 32 };

/* A tensor of parameters: a part of the model's weights, and of its gradients. */
typedef struct model_parameter {
  char name[MODEL_NAME_SIZE]; /* "conv1.weight" */
  size_t offset;
  size_t count;
} model_parameter;

/* All weights lie in one vector and all gradients in another of the same
 * layout, in the order in which backward makes them. */
typedef struct model {
  layer layers[MODEL_LAYERS_MAX];
  int layer_count;
  model_parameter parameters[MODEL_PARAMETERS_MAX];
  int parameter_count;
  size_t weight_count; /* over all parameters */
  int batch_max;
  float *weights;                           /* [weight_count] */
  float *gradients;                         /* [weight_count], of lcomm_memory_alloc():
                                             * ranks of a host read them where they are */
  float *activations[MODEL_LAYERS_MAX + 1]; /* [i] is the input of layer i, [0] the images */
  float *deltas[2];                         /* gradients of activations, in turn */
} model;

/* Called by model_backward() when parameters[first .. first+count-1] are done. */
typedef void model_ready(void *context, int first, int count);

/* Text such as "cnn, mlp", and one model in words; NULL if there is none. */
const char *model_names(void);
const char *model_describe(const char *name);

/* Returns 0, or -1 without memory or for an unknown name; then nothing is
 * kept. The weights are zero. */
int model_create(const char *name, layer_shape input, int classes, int batch_max, model *made);
void model_destroy(model *self);

/* Draw the weights from the seed (He, uniform); biases are zero. */
void model_draw_weights(model *self, uint64_t seed);

/* Where the caller puts the images: up to batch_max of them. */
float *model_input(model *self);

/* Logits [B][class] of the images in model_input(). */
const float *model_forward(model *self, int batch);

/* Where the caller puts the gradient of the logits before model_backward(). */
float *model_logits_delta(model *self);

/* Fill the gradients, after model_forward() with the same batch. */
void model_backward(model *self, int batch, model_ready *ready, void *context);

#endif

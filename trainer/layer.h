/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_LAYER_H
#define TRAINER_LAYER_H

#include <stddef.h>
#include <stdint.h>

/* A layer turns a mini-batch of activations into another one.
 *
 * Images are stored channel by channel: [channel][image][row][column], so a
 * convolution over the whole mini-batch is one matrix product and writes its
 * result in place. After flatten_layer() a mini-batch is [image][feature].
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
  layer_shape in;
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

/* 3x3 convolution with a border of zeros: height and width stay. */
layer conv_layer(const char *name, layer_shape in, int channels);

/* Every output sees every input; `in` is flat. */
layer dense_layer(const char *name, layer_shape in, int features);

/* Largest of each 2x2 square; an odd last row or column is dropped. */
layer pool_layer(layer_shape in);

/* max(0, x) */
layer relu_layer(layer_shape in);

/* [channel][image][row][column] to [image][feature] */
layer flatten_layer(layer_shape in);

#endif

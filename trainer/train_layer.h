/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_LAYER_H
#define TRAINER_TRAIN_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/train_backend.h"

/* A layer turns a mini-batch of activations into another one. B is the number of images, or of
 * windows of text, of a mini-batch.
 *
 * Images are stored channel by channel, [channel][B][row][column], so a convolution over the whole
 * mini-batch is one matrix product and writes its result in place. After flatten_layer() a
 * mini-batch is [B][feature].
 *
 * Text of T positions with C channels is [B][T][C], so a product over all positions of a mini-batch
 * is one, too: B*T rows of a matrix. Its shape is {C, T, 1}.
 *
 * Parameters and their gradients belong to the model; a layer views them. Gradients of parameters
 * are float32, all else is of elements. */

typedef struct layer layer;

typedef struct layer_kind {
  void (*forward)(layer *self, const element *in, element *out, int batch);
  /* Writes the parameters' gradients, and in_delta unless it is NULL (nobody
   * needs the gradient of the input of the first layer). */
  void (*backward)(layer *self, const element *in, const element *out, const element *out_delta,
                   element *in_delta, int batch);
  /* Forward on samples that are not trained on; NULL: no different. */
  void (*infer)(layer *self, const element *in, element *out, int batch);
} layer_kind;

enum { LAYER_NAME_SIZE = 32 };

struct layer {
  const layer_kind *kind;
  const backend *on;          /* whose memory all of this is, and that computes */
  char name[LAYER_NAME_SIZE]; /* of its parameters */
  int number;                 /* in its model, whichever layers of it a rank has */
  layer_shape in;             /* of one image or window */
  layer_shape out;
  size_t weight_count;     /* 0: it has no parameters */
  size_t weight_rows;      /* of the weights as a matrix, row by row; 0: a gain */
  size_t bias_count;       /* 0: it has weights only */
  float centre, bound;     /* the first weights are drawn from centre - bound .. centre + bound */
  size_t statistics_count; /* what it remembers of the samples it saw; 0: nothing */
  element *weight;
  element *bias;
  float *weight_gradient;
  float *bias_gradient;
  float *statistics;
  int heads;            /* of attention */
  bool tied;            /* it has no weights of its own but uses those of the first layer */
  int skip_back;        /* add_layer(): the input of the layer so many before is added; else 0 */
  const element *skip;  /* that input, as large as `in` */
  element *skip_delta;  /* and where its gradient goes */
  size_t scratch_count; /* elements, whatever the mini-batch; 0: none */
  element *scratch;     /* not kept from one call to the next */
};

/* ------------------------------------------------------------------ images */

/* 3x3 convolution with a border of zeros, with a bias unless its bias_count is set to 0:
 * [in.channels][B][height][width] to [channels][B][height][width] */
layer conv_layer(const char *name, layer_shape in, int channels);

/* Every output sees every input: [B][in] to [B][features] */
layer dense_layer(const char *name, layer_shape in, int features);

/* Largest of each 2x2 square, an odd last row or column is dropped:
 * [channel][B][height][width] to [channel][B][height/2][width/2] */
layer pool_layer(layer_shape in);

/* Mean over all pixels of a channel: [channel][B][height][width] to [B][channel] */
layer average_layer(layer_shape in);

/* max(0, x), any shape */
layer relu_layer(layer_shape in);

/* Each channel is moved and scaled to mean 0 and variance 1 over the mini-batch, then by a gain and
 * a bias; any shape of images. On samples that are not trained on, mean and variance are those that
 * it remembers. */
layer batch_norm_layer(const char *name, layer_shape in);

/* [channel][B][height][width] to [B][channel*height*width] */
layer flatten_layer(layer_shape in);

/* -------------------------------------------------------------------- text */

/* A vector for each byte: bytes as numbers [B][T] to [B][T][channels]. The head uses the same
 * weights, and its backward comes first and writes their gradient; this one adds to it. */
layer embedding_layer(const char *name, layer_shape in, int channels);

/* A vector for each position is added: [B][T][C] to the same */
layer position_layer(const char *name, layer_shape in);

/* Each position is moved and scaled to mean 0 and variance 1, then by a gain and a bias for each
 * channel: [B][T][C] to the same */
layer layer_norm_layer(const char *name, layer_shape in);

/* The same dense layer at every position: [B][T][C] to [B][T][features] */
layer linear_layer(const char *name, layer_shape in, int features);

/* Causal attention with so many heads: [B][T][3*C], that is queries, keys and values, to
 * [B][T][C] */
layer attention_layer(layer_shape in, int heads);

/* x times the normal distribution up to x, approximated by tanh; any shape */
layer gelu_layer(layer_shape in);

/* Logits of the bytes by the weights of the embedding: [B][T][C] to [B][T][classes] */
layer tied_head_layer(layer_shape in, int classes);

/* Of a model whose head and embedding are on different ranks each has the weights, under one name
 * and with the same first values, and writes its own gradient: that of the weights is the sum of
 * both. */
void embedding_stands_alone(layer *self);
void head_stands_alone(layer *self, const layer *embedding);

/* --------------------------------------------------------------------- both */

/* The input of the layer `back` before this one, which has the same shape, is added; any shape */
layer add_layer(layer_shape in, int back);

/* ----------------------------------------------------- for those who make layers */

/* Without parameters, with an output of the shape of its input. */
layer layer_begin(const layer_kind *kind, const char *name, layer_shape in);

/* He et al., 2015: uniform, so that activations behind a relu keep their variance. */
float layer_he_bound(int inputs);

static inline matrix matrix_of(const element *values, int step) {
  return (matrix){.values = values, .step = step};
}

static inline matrix matrix_transposed(const element *values, int step) {
  return (matrix){.values = values, .step = step, .transposed = true};
}

/* out[rows][columns] = a * b, of elements; a has `depth` columns. */
static inline product product_of(int rows, int columns, int depth, matrix a, matrix b,
                                 element *out) {
  return (product){.rows = rows,
                   .columns = columns,
                   .depth = depth,
                   .a = a,
                   .b = b,
                   .out = out,
                   .step = columns,
                   .scale = 1.0f,
                   .count = 1};
}

#endif

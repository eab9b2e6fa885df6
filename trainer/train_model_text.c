/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>
#include <string.h>

#include "trainer/train_layer.h"

/* The layers of text. A mini-batch is B windows of T positions with C channels each; a matrix is
 * written [rows][columns]. */

static int rows_of(const layer *self, int batch) {
  return batch * self->in.height;
}

/* --------------------------------------------------------------- embedding
 *
 *   in [B][T]   weight [256][C]   out [B][T][C]
 *
 *   forward    out[b][t] = weight[in[b][t]]
 *   backward   weight_gradient[in[b][t]] += out_delta[b][t] */

enum { BYTES = 256 };

static void embedding_forward(layer *self, const element *in, element *out, int batch) {
  self->on->embed(in, self->weight, out, rows_of(self, batch), self->out.channels);
}

static void embedding_backward(layer *self, const element *in, const element *out,
                               const element *out_delta, element *in_delta, int batch) {
  (void)out;
  (void)in_delta; /* bytes have no gradient */
  self->on->embed_back(in, out_delta, self->weight_gradient, rows_of(self, batch),
                       self->out.channels);
}

static const layer_kind embedding_kind = {embedding_forward, embedding_backward, NULL};

layer embedding_layer(const char *name, layer_shape in, int channels) {
  layer made = layer_begin(&embedding_kind, name, in);
  made.out.channels = channels;
  made.weight_count = (size_t)BYTES * channels;
  made.weight_rows = BYTES;
  made.bound = 1.0f / sqrtf((float)channels);
  return made;
}

static void alone_backward(layer *self, const element *in, const element *out,
                           const element *out_delta, element *in_delta, int batch) {
  self->on->clear(self->weight_gradient, self->weight_count * sizeof(float));
  embedding_backward(self, in, out, out_delta, in_delta, batch);
}

static const layer_kind alone_kind = {embedding_forward, alone_backward, NULL};

void embedding_stands_alone(layer *self) {
  self->kind = &alone_kind;
}

/* ---------------------------------------------------------------- position
 *
 *   in [B][T][C]   weight [T][C]   out [B][T][C]
 *
 *   forward    out[b] = in[b] + weight
 *   backward   weight_gradient = sum of out_delta over the windows; in_delta = out_delta */

static void position_forward(layer *self, const element *in, element *out, int batch) {
  size_t count = layer_shape_count(self->in);
  for (int window = 0; window < batch; window++) {
    size_t at = (size_t)window * count;
    self->on->add(element_at(self->on, in, at), self->weight, element_at(self->on, out, at), count);
  }
}

static void position_backward(layer *self, const element *in, const element *out,
                              const element *out_delta, element *in_delta, int batch) {
  (void)in;
  (void)out;
  size_t count = layer_shape_count(self->in);
  self->on->sum_rows(out_delta, self->weight_gradient, batch, (int)count);
  if (in_delta) {
    self->on->copy(in_delta, out_delta, count * (size_t)batch * self->on->element_size);
  }
}

static const layer_kind position_kind = {position_forward, position_backward, NULL};

layer position_layer(const char *name, layer_shape in) {
  layer made = layer_begin(&position_kind, name, in);
  made.weight_count = layer_shape_count(in);
  made.weight_rows = (size_t)in.height;
  made.bound = 1.0f / sqrtf((float)in.channels);
  return made;
}

/* -------------------------------------------------------------- layer norm
 *
 *   in [B*T][C]   weight [C]   bias [C]   out [B*T][C]
 *
 *   forward    x = (in - mean) / deviation, of each row; out = weight * x + bias
 *   backward   d = weight * out_delta
 *              in_delta = (d - mean(d) - x * mean(d * x)) / deviation
 *
 * Backward computes mean and deviation again instead of keeping them. */

static void norm_forward(layer *self, const element *in, element *out, int batch) {
  self->on->layer_norm(in, self->weight, self->bias, out, rows_of(self, batch), self->in.channels);
}

static void norm_backward(layer *self, const element *in, const element *out,
                          const element *out_delta, element *in_delta, int batch) {
  (void)out;
  self->on->layer_norm_back(in, self->weight, out_delta, self->weight_gradient, self->bias_gradient,
                            in_delta, rows_of(self, batch), self->in.channels);
}

static const layer_kind norm_kind = {norm_forward, norm_backward, NULL};

layer layer_norm_layer(const char *name, layer_shape in) {
  layer made = layer_begin(&norm_kind, name, in);
  made.weight_count = (size_t)in.channels;
  made.bias_count = (size_t)in.channels;
  made.centre = 1.0f;
  return made;
}

/* -------------------------------------------------------------------- gelu
 *
 *   in and out of any shape
 *
 *   forward    out = in / (1 + exp(-2u)), u = sqrt(2 / pi) * (in + 0.044715 * in^3) */

static void gelu_forward(layer *self, const element *in, element *out, int batch) {
  self->on->gelu(in, out, layer_shape_count(self->in) * (size_t)batch);
}

static void gelu_backward(layer *self, const element *in, const element *out,
                          const element *out_delta, element *in_delta, int batch) {
  (void)out;
  self->on->gelu_back(in, out_delta, in_delta, layer_shape_count(self->in) * (size_t)batch);
}

static const layer_kind gelu_kind = {gelu_forward, gelu_backward, NULL};

layer gelu_layer(layer_shape in) {
  return layer_begin(&gelu_kind, "", in);
}

/* --------------------------------------------------------------- tied head
 *
 *   in [B*T][C]   weight [256][C] of the embedding   out [B*T][256]
 *
 *   forward    out = in * weight^T
 *   backward   weight_gradient = out_delta^T * in; in_delta = out_delta * weight */

static void head_forward(layer *self, const element *in, element *out, int batch) {
  int channels = self->in.channels, classes = self->out.channels;
  product scores = product_of(rows_of(self, batch), classes, channels, matrix_of(in, channels),
                              matrix_transposed(self->weight, channels), out);
  self->on->multiply(&scores);
}

static void head_backward(layer *self, const element *in, const element *out,
                          const element *out_delta, element *in_delta, int batch) {
  (void)out;
  int rows = rows_of(self, batch), channels = self->in.channels, classes = self->out.channels;
  product weights = product_of(classes, channels, rows, matrix_transposed(out_delta, classes),
                               matrix_of(in, channels), self->weight_gradient);
  weights.wide = true;
  self->on->multiply(&weights);
  product back = product_of(rows, channels, classes, matrix_of(out_delta, classes),
                            matrix_of(self->weight, channels), in_delta);
  self->on->multiply(&back);
}

static const layer_kind head_kind = {head_forward, head_backward, NULL};

layer tied_head_layer(layer_shape in, int classes) {
  layer made = layer_begin(&head_kind, "", in);
  made.out.channels = classes;
  made.tied = true;
  return made;
}

void head_stands_alone(layer *self, const layer *embedding) {
  self->tied = false;
  self->number = embedding->number;
  memcpy(self->name, embedding->name, sizeof self->name);
  self->weight_count = embedding->weight_count;
  self->weight_rows = embedding->weight_rows;
  self->centre = embedding->centre;
  self->bound = embedding->bound;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>
#include <stdio.h>

#include "trainer/train_layer.h"

/* The layers that images and text share, the simplest first. B is the number of images of a
 * mini-batch; a matrix is written [rows][columns]. */

layer layer_begin(const layer_kind *kind, const char *name, layer_shape in) {
  layer made = {.kind = kind, .in = in, .out = in};
  snprintf(made.name, sizeof made.name, "%s", name);
  return made;
}

float layer_he_bound(int inputs) {
  return sqrtf(6.0f / (float)inputs);
}

/* ------------------------------------------------------------------- dense
 *
 *   in [R][I]   weight [O][I]   bias [O]   out [R][O]
 *
 *   forward    out = in * weight^T + bias
 *   backward   weight_gradient = out_delta^T * in
 *              bias_gradient   = sum of out_delta over the rows
 *              in_delta        = out_delta * weight
 *
 * R rows are the images, or all positions of all windows of text. */

static int rows_of(const layer *self, int batch) {
  return batch * self->in.height * self->in.width;
}

static void dense_forward(layer *self, const element *in, element *out, int batch) {
  int rows = rows_of(self, batch);
  int inputs = self->in.channels, outputs = self->out.channels;
  self->on->fill_rows(self->bias, out, rows, outputs);
  product sum = product_of(rows, outputs, inputs, matrix_of(in, inputs),
                           matrix_transposed(self->weight, inputs), out);
  sum.keep = 1.0f;
  self->on->multiply(&sum);
}

static void dense_backward(layer *self, const element *in, const element *out,
                           const element *out_delta, element *in_delta, int batch) {
  (void)out;
  int rows = rows_of(self, batch);
  int inputs = self->in.channels, outputs = self->out.channels;
  product weights = product_of(outputs, inputs, rows, matrix_transposed(out_delta, outputs),
                               matrix_of(in, inputs), self->weight_gradient);
  weights.wide = true;
  self->on->multiply(&weights);
  self->on->sum_rows(out_delta, self->bias_gradient, rows, outputs);
  if (in_delta) {
    product back = product_of(rows, inputs, outputs, matrix_of(out_delta, outputs),
                              matrix_of(self->weight, inputs), in_delta);
    self->on->multiply(&back);
  }
}

static const layer_kind dense_kind = {dense_forward, dense_backward, NULL};

layer linear_layer(const char *name, layer_shape in, int features) {
  layer made = layer_begin(&dense_kind, name, in);
  made.out = (layer_shape){features, in.height, in.width};
  made.bound = layer_he_bound(in.channels);
  made.weight_count = (size_t)features * in.channels;
  made.weight_rows = (size_t)features;
  made.bias_count = (size_t)features;
  return made;
}

layer dense_layer(const char *name, layer_shape in, int features) {
  return linear_layer(name, (layer_shape){(int)layer_shape_count(in), 1, 1}, features);
}

/* -------------------------------------------------------------------- relu
 *
 *   in and out of any shape */

static void relu_forward(layer *self, const element *in, element *out, int batch) {
  self->on->relu(in, out, layer_shape_count(self->in) * batch);
}

static void relu_backward(layer *self, const element *in, const element *out,
                          const element *out_delta, element *in_delta, int batch) {
  (void)in;
  if (in_delta) {
    self->on->relu_back(out, out_delta, in_delta, layer_shape_count(self->in) * batch);
  }
}

static const layer_kind relu_kind = {relu_forward, relu_backward, NULL};

layer relu_layer(layer_shape in) {
  return (layer){.kind = &relu_kind, .in = in, .out = in};
}

/* ----------------------------------------------------------------- flatten
 *
 *   in [C][B][H][W]   out [B][C*H*W] */

static void flatten_forward(layer *self, const element *in, element *out, int batch) {
  self->on->flatten(in, out, self->in, batch);
}

static void flatten_backward(layer *self, const element *in, const element *out,
                             const element *out_delta, element *in_delta, int batch) {
  (void)in;
  (void)out;
  if (in_delta) {
    self->on->flatten_back(out_delta, in_delta, self->in, batch);
  }
}

static const layer_kind flatten_kind = {flatten_forward, flatten_backward, NULL};

layer flatten_layer(layer_shape in) {
  layer_shape out = {(int)layer_shape_count(in), 1, 1};
  return (layer){.kind = &flatten_kind, .in = in, .out = out};
}

/* --------------------------------------------------------------------- add
 *
 *   in, skip and out of any shape
 *
 *   forward    out = in + skip
 *   backward   in_delta = out_delta; skip_delta = out_delta */

static void add_forward(layer *self, const element *in, element *out, int batch) {
  self->on->add(in, self->skip, out, layer_shape_count(self->in) * (size_t)batch);
}

static void add_backward(layer *self, const element *in, const element *out,
                         const element *out_delta, element *in_delta, int batch) {
  (void)in;
  (void)out;
  size_t size = layer_shape_count(self->in) * (size_t)batch * self->on->element_size;
  self->on->copy(in_delta, out_delta, size);
  self->on->copy(self->skip_delta, out_delta, size);
}

static const layer_kind add_kind = {add_forward, add_backward, NULL};

layer add_layer(layer_shape in, int back) {
  return (layer){.kind = &add_kind, .in = in, .out = in, .skip_back = back};
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_layer.h"

/* ------------------------------------------------------------- convolution
 *
 *   in [C][B][H][W]   weight [O][C*9]   bias [O]   out [O][B][H][W]
 *
 * The nine taps of a 3x3 window are nine copies of the image, each moved by
 * one pixel. Side by side they are a matrix, and the convolution is a product:
 *
 *   columns [C*9][B*H*W]: columns[c*9 + t][b][y][x] = in[c][b][y + dy(t)][x + dx(t)], 0 outside
 *
 *   forward    out = weight * columns + bias
 *   backward   weight_gradient = out_delta * columns^T
 *              bias_gradient   = sum of out_delta over images and pixels
 *              in_delta        = weight^T * out_delta, each row moved back and added
 *
 * CHUNK images are worked off at a time: their columns stay in the second-level
 * cache, and the mini-batch may be of any size. */

enum { CHUNK = 8, TAPS = 9 };

static size_t plane_of(layer_shape shape) {
  return (size_t)shape.height * (size_t)shape.width;
}

static image_part part_at(layer_shape shape, int batch, int first) {
  int images = batch - first < CHUNK ? batch - first : CHUNK;
  return (image_part){.shape = shape, .batch = batch, .first = first, .images = images};
}

static void conv_forward(layer *self, const element *in, element *out, int batch) {
  int plane = (int)plane_of(self->in), depth = self->in.channels * TAPS;
  const float *bias = self->bias_count > 0 ? self->bias : NULL;
  for (int first = 0; first < batch; first += CHUNK) {
    image_part part = part_at(self->in, batch, first);
    int width = part.images * plane;
    self->on->gather_columns(in, part, self->scratch);
    self->on->fill_channels(bias, part_at(self->out, batch, first), out);
    self->on->multiply(&(product){.rows = self->out.channels,
                                  .columns = width,
                                  .depth = depth,
                                  .a = matrix_of(self->weight, depth),
                                  .b = matrix_of(self->scratch, width),
                                  .out = element_at(self->on, out, (size_t)first * plane),
                                  .step = batch * plane,
                                  .scale = 1.0f,
                                  .keep = 1.0f,
                                  .count = 1});
  }
}

/* `delta` is out_delta from the first image of the part on, its rows are `step` apart. */
static void weights_backward(layer *self, image_part part, const element *delta, int step) {
  int width = part.images * (int)plane_of(self->in), depth = self->in.channels * TAPS;
  self->on->multiply(&(product){.rows = self->out.channels,
                                .columns = depth,
                                .depth = width,
                                .a = matrix_of(delta, step),
                                .b = matrix_transposed(self->scratch, width),
                                .out = self->weight_gradient,
                                .wide = true,
                                .step = depth,
                                .scale = 1.0f,
                                .keep = part.first ? 1.0f : 0.0f,
                                .count = 1});
}

static void images_backward(layer *self, image_part part, const element *delta, int step,
                            element *in_delta) {
  int width = part.images * (int)plane_of(self->in), depth = self->in.channels * TAPS;
  product columns =
      product_of(depth, width, self->out.channels, matrix_transposed(self->weight, depth),
                 matrix_of(delta, step), self->scratch);
  self->on->multiply(&columns);
  self->on->add_columns(self->scratch, part, in_delta);
}

static void conv_backward(layer *self, const element *in, const element *out,
                          const element *out_delta, element *in_delta, int batch) {
  (void)out;
  size_t plane = plane_of(self->in), row = (size_t)batch * plane;
  if (self->bias_count > 0) {
    self->on->sum_channels(out_delta, self->bias_gradient, self->out.channels, row);
  }
  if (in_delta) {
    self->on->clear(in_delta, (size_t)self->in.channels * row * self->on->element_size);
  }
  for (int first = 0; first < batch; first += CHUNK) {
    image_part part = part_at(self->in, batch, first);
    const element *delta = element_at(self->on, out_delta, (size_t)first * plane);
    self->on->gather_columns(in, part, self->scratch);
    weights_backward(self, part, delta, (int)row);
    if (in_delta) {
      images_backward(self, part, delta, (int)row, in_delta);
    }
  }
}

static const layer_kind conv_kind = {conv_forward, conv_backward, NULL};

layer conv_layer(const char *name, layer_shape in, int channels) {
  layer made = layer_begin(&conv_kind, name, in);
  made.out = (layer_shape){channels, in.height, in.width};
  made.bound = layer_he_bound(in.channels * TAPS);
  made.weight_count = (size_t)channels * in.channels * TAPS;
  made.weight_rows = (size_t)channels;
  made.bias_count = (size_t)channels;
  made.scratch_count = CHUNK * TAPS * layer_shape_count(in); /* columns */
  return made;
}

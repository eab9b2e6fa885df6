/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trainer/train_layer.h"
#include "trainer/train_math.h"

/* The layers of images, the simplest first. B is the number of images of a mini-batch;
 * a matrix is written [rows][columns]. */

static size_t plane_of(layer_shape shape) {
  return (size_t)shape.height * (size_t)shape.width;
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

static void dense_forward(layer *self, const float *in, float *out, int batch) {
  int rows = rows_of(self, batch);
  int inputs = self->in.channels, outputs = self->out.channels;
  for (int row = 0; row < rows; row++) {
    memcpy(out + (size_t)row * outputs, self->bias, (size_t)outputs * sizeof *out);
  }
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, outputs, inputs, 1.0f, in, inputs,
              self->weight, inputs, 1.0f, out, outputs);
}

static void dense_backward(layer *self, const float *in, const float *out, const float *out_delta,
                           float *in_delta, int batch) {
  (void)out;
  int rows = rows_of(self, batch);
  int inputs = self->in.channels, outputs = self->out.channels;
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, outputs, inputs, rows, 1.0f, out_delta,
              outputs, in, inputs, 0.0f, self->weight_gradient, inputs);
  memset(self->bias_gradient, 0, (size_t)outputs * sizeof(float));
  for (int row = 0; row < rows; row++) {
    for (int output = 0; output < outputs; output++) {
      self->bias_gradient[output] += out_delta[(size_t)row * outputs + output];
    }
  }
  if (in_delta) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, inputs, outputs, 1.0f, out_delta,
                outputs, self->weight, inputs, 0.0f, in_delta, inputs);
  }
}

static const layer_kind dense_kind = {dense_forward, dense_backward, NULL};

/* He et al., 2015: uniform, so that activations behind a relu keep their variance. */
static float he_bound(int inputs) {
  return sqrtf(6.0f / (float)inputs);
}

static layer named(const layer_kind *kind, const char *name, layer_shape in) {
  layer made = {.kind = kind, .in = in};
  snprintf(made.name, sizeof made.name, "%s", name);
  return made;
}

layer linear_layer(const char *name, layer_shape in, int features) {
  layer made = named(&dense_kind, name, in);
  made.out = (layer_shape){features, in.height, in.width};
  made.bound = he_bound(in.channels);
  made.weight_count = (size_t)features * in.channels;
  made.bias_count = (size_t)features;
  return made;
}

layer dense_layer(const char *name, layer_shape in, int features) {
  return linear_layer(name, (layer_shape){(int)layer_shape_count(in), 1, 1}, features);
}

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

/* One tap: pixel i of the moved plane is pixel i + offset of the image, for
 * first <= i < end. Where dx is not 0, the pixels at one edge come from the
 * neighbouring row; clear_border() clears them. */
typedef struct tap {
  int dy, dx;
  ptrdiff_t offset, first, end;
} tap;

static tap tap_of(int index, layer_shape shape) {
  tap made = {.dy = index / 3 - 1, .dx = index % 3 - 1};
  made.end = (ptrdiff_t)plane_of(shape);
  made.offset = (ptrdiff_t)made.dy * shape.width + made.dx;
  if (made.offset < 0) {
    made.first = -made.offset;
  } else {
    made.end -= made.offset;
  }
  return made; /* an image of one row may lose all: first > end or end < 0 */
}

/* Zero what the moved plane has beyond the border of the image. */
static void clear_border(float *plane, layer_shape shape, tap by) {
  size_t height = (size_t)shape.height, width = (size_t)shape.width;
  if (by.dy) {
    memset(by.dy < 0 ? plane : plane + (height - 1) * width, 0, width * sizeof *plane);
  }
  if (by.dx) {
    for (size_t y = 0; y < height; y++) {
      plane[y * width + (by.dx < 0 ? 0 : width - 1)] = 0.0f;
    }
  }
}

static void move_plane(const float *image, float *moved, layer_shape shape, tap by) {
  if (by.first < by.end) {
    memcpy(moved + by.first, image + (by.first + by.offset),
           (size_t)(by.end - by.first) * sizeof *moved);
  }
  clear_border(moved, shape, by);
}

/* The transpose of move_plane(), added; `moved` loses its border. */
static void move_back_add(float *restrict moved, float *restrict image, layer_shape shape, tap by) {
  clear_border(moved, shape, by);
  for (ptrdiff_t i = by.first; i < by.end; i++) {
    image[i + by.offset] += moved[i];
  }
}

/* columns [C*9][images][H][W], of the images from `first` on */
static void gather_columns(const layer *self, const float *in, int batch, int first, int images,
                           float *columns) {
  size_t plane = plane_of(self->in);
  for (int row = 0; row < self->in.channels * TAPS; row++) {
    const float *image = in + ((size_t)(row / TAPS) * batch + first) * plane;
    tap by = tap_of(row % TAPS, self->in);
    for (int i = 0; i < images; i++, image += plane, columns += plane) {
      move_plane(image, columns, self->in, by);
    }
  }
}

static void scatter_columns(const layer *self, float *columns, int batch, int first, int images,
                            float *in_delta) {
  size_t plane = plane_of(self->in);
  for (int row = 0; row < self->in.channels * TAPS; row++) {
    float *image = in_delta + ((size_t)(row / TAPS) * batch + first) * plane;
    tap by = tap_of(row % TAPS, self->in);
    for (int i = 0; i < images; i++, image += plane, columns += plane) {
      move_back_add(columns, image, self->in, by);
    }
  }
}

static int chunk_at(int first, int batch) {
  return batch - first < CHUNK ? batch - first : CHUNK;
}

static void conv_forward(layer *self, const float *in, float *out, int batch) {
  int plane = (int)plane_of(self->in);
  int depth = self->in.channels * TAPS;
  int images;
  for (int first = 0; first < batch; first += images) {
    images = chunk_at(first, batch);
    int width = images * plane;
    float *chunk = out + (size_t)first * plane; /* [O][images*H*W], rows B*H*W apart */
    gather_columns(self, in, batch, first, images, self->scratch);
    for (int channel = 0; channel < self->out.channels; channel++) {
      float *row = chunk + (size_t)channel * batch * plane;
      float bias = self->bias_count > 0 ? self->bias[channel] : 0.0f;
      for (int i = 0; i < width; i++) {
        row[i] = bias;
      }
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, self->out.channels, width, depth, 1.0f,
                self->weight, depth, self->scratch, width, 1.0f, chunk, batch * plane);
  }
}

static void conv_backward(layer *self, const float *in, const float *out, const float *out_delta,
                          float *in_delta, int batch) {
  (void)out;
  int plane = (int)plane_of(self->in);
  int depth = self->in.channels * TAPS;
  size_t row = (size_t)batch * plane;
  for (int channel = 0; channel < (int)self->bias_count; channel++) {
    self->bias_gradient[channel] = math_sum(out_delta + channel * row, row);
  }
  if (in_delta) {
    memset(in_delta, 0, self->in.channels * row * sizeof *in_delta);
  }
  int images;
  for (int first = 0; first < batch; first += images) {
    images = chunk_at(first, batch);
    int width = images * plane;
    const float *chunk = out_delta + (size_t)first * plane;
    gather_columns(self, in, batch, first, images, self->scratch);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, self->out.channels, depth, width, 1.0f,
                chunk, (int)row, self->scratch, width, first ? 1.0f : 0.0f, self->weight_gradient,
                depth);
    if (!in_delta) {
      continue;
    }
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, depth, width, self->out.channels, 1.0f,
                self->weight, depth, chunk, (int)row, 0.0f, self->scratch, width);
    scatter_columns(self, self->scratch, batch, first, images, in_delta);
  }
}

static const layer_kind conv_kind = {conv_forward, conv_backward, NULL};

layer conv_layer(const char *name, layer_shape in, int channels) {
  layer made = named(&conv_kind, name, in);
  made.out = (layer_shape){channels, in.height, in.width};
  made.bound = he_bound(in.channels * TAPS);
  made.weight_count = (size_t)channels * in.channels * TAPS;
  made.bias_count = (size_t)channels;
  made.scratch_size = CHUNK * TAPS * layer_shape_count(in) * sizeof(float); /* columns */
  return made;
}

/* -------------------------------------------------------------------- relu
 *
 *   in and out of any shape */

static void relu_forward(layer *self, const float *in, float *out, int batch) {
  size_t count = layer_shape_count(self->in) * batch;
  for (size_t i = 0; i < count; i++) {
    out[i] = in[i] < 0.0f ? 0.0f : in[i]; /* keeps a NaN, so that it is seen */
  }
}

static void relu_backward(layer *self, const float *in, const float *out, const float *out_delta,
                          float *in_delta, int batch) {
  (void)in;
  if (!in_delta) {
    return;
  }
  size_t count = layer_shape_count(self->in) * batch;
  for (size_t i = 0; i < count; i++) {
    in_delta[i] = out[i] > 0.0f ? out_delta[i] : 0.0f;
  }
}

static const layer_kind relu_kind = {relu_forward, relu_backward, NULL};

layer relu_layer(layer_shape in) {
  return (layer){.kind = &relu_kind, .in = in, .out = in};
}

/* ----------------------------------------------------------------- flatten
 *
 *   in [C][B][H][W]   out [B][C*H*W] */

static void flatten_forward(layer *self, const float *in, float *out, int batch) {
  size_t plane = plane_of(self->in);
  size_t features = layer_shape_count(self->in);
  for (int channel = 0; channel < self->in.channels; channel++) {
    for (int image = 0; image < batch; image++, in += plane) {
      memcpy(out + image * features + channel * plane, in, plane * sizeof *out);
    }
  }
}

static void flatten_backward(layer *self, const float *in, const float *out, const float *out_delta,
                             float *in_delta, int batch) {
  (void)in;
  (void)out;
  if (!in_delta) {
    return;
  }
  size_t plane = plane_of(self->in);
  size_t features = layer_shape_count(self->in);
  for (int channel = 0; channel < self->in.channels; channel++) {
    for (int image = 0; image < batch; image++, in_delta += plane) {
      memcpy(in_delta, out_delta + image * features + channel * plane, plane * sizeof *in_delta);
    }
  }
}

static const layer_kind flatten_kind = {flatten_forward, flatten_backward, NULL};

layer flatten_layer(layer_shape in) {
  layer_shape out = {(int)layer_shape_count(in), 1, 1};
  return (layer){.kind = &flatten_kind, .in = in, .out = out};
}

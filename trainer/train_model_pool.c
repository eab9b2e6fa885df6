/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <string.h>

#include "trainer/train_layer.h"
#include "trainer/train_math.h"

/* The layers that make images smaller: the largest of four pixels, and the mean of all. */

static size_t plane_of(layer_shape shape) {
  return (size_t)shape.height * (size_t)shape.width;
}

/* ----------------------------------------------------------------- pooling
 *
 *   in [C][B][H][W]   out [C][B][H/2][W/2]
 *
 * Which of four activations is the largest is as good as random, so there are
 * selections here and no branches, which would be guessed wrong. Backward
 * finds the largest again by comparing instead of keeping its place. */

static void pool_plane(const float *restrict in, float *restrict out, layer_shape from,
                       layer_shape to) {
  for (int y = 0; y < to.height; y++) {
    const float *upper = in + (size_t)(2 * y) * from.width;
    const float *lower = upper + from.width;
    for (int x = 0; x < to.width; x++) {
      float above = upper[2 * x] > upper[2 * x + 1] ? upper[2 * x] : upper[2 * x + 1];
      float below = lower[2 * x] > lower[2 * x + 1] ? lower[2 * x] : lower[2 * x + 1];
      out[x] = above > below ? above : below;
    }
    out += to.width;
  }
}

/* Of equal inputs the first one takes the gradient. */
static void unpool_plane(const float *restrict in, const float *restrict out,
                         const float *restrict out_delta, float *restrict in_delta,
                         layer_shape from, layer_shape to) {
  for (int y = 0; y < to.height; y++) {
    size_t row = (size_t)(2 * y) * from.width;
    const float *upper = in + row, *lower = upper + from.width;
    float *upper_delta = in_delta + row, *lower_delta = upper_delta + from.width;
    for (int x = 0; x < to.width; x++) {
      float largest = out[x], delta = out_delta[x];
      int first = upper[2 * x] == largest;
      int second = (upper[2 * x + 1] == largest) & !first;
      int third = (lower[2 * x] == largest) & !(first | second);
      int fourth = !(first | second | third);
      upper_delta[2 * x] = first ? delta : 0.0f;
      upper_delta[2 * x + 1] = second ? delta : 0.0f;
      lower_delta[2 * x] = third ? delta : 0.0f;
      lower_delta[2 * x + 1] = fourth ? delta : 0.0f;
    }
    out += to.width;
    out_delta += to.width;
  }
}

static void pool_forward(layer *self, const float *in, float *out, int batch) {
  size_t planes = (size_t)self->in.channels * batch;
  size_t step_in = plane_of(self->in);
  size_t step_out = plane_of(self->out);
  for (size_t i = 0; i < planes; i++) {
    pool_plane(in + i * step_in, out + i * step_out, self->in, self->out);
  }
}

static void pool_backward(layer *self, const float *in, const float *out, const float *out_delta,
                          float *in_delta, int batch) {
  if (!in_delta) {
    return;
  }
  size_t planes = (size_t)self->in.channels * batch;
  size_t step_in = plane_of(self->in);
  size_t step_out = plane_of(self->out);
  if (self->in.height % 2 || self->in.width % 2) {
    memset(in_delta, 0, planes * step_in * sizeof *in_delta);
  }
  for (size_t i = 0; i < planes; i++) {
    unpool_plane(in + i * step_in, out + i * step_out, out_delta + i * step_out,
                 in_delta + i * step_in, self->in, self->out);
  }
}

static const layer_kind pool_kind = {pool_forward, pool_backward, NULL};

layer pool_layer(layer_shape in) {
  layer_shape out = {in.channels, in.height / 2, in.width / 2};
  return (layer){.kind = &pool_kind, .in = in, .out = out};
}

/* ----------------------------------------------------------------- average
 *
 *   in [C][B][H][W]   out [B][C]
 *
 *   forward    out[b][c] = mean of in[c][b]
 *   backward   in_delta[c][b] = out_delta[b][c] / (H*W), at each pixel */

static void average_forward(layer *self, const float *in, float *out, int batch) {
  int channels = self->in.channels;
  size_t plane = plane_of(self->in);
  for (int channel = 0; channel < channels; channel++) {
    for (int image = 0; image < batch; image++, in += plane) {
      out[image * channels + channel] = math_sum(in, plane) / (float)plane;
    }
  }
}

static void average_backward(layer *self, const float *in, const float *out, const float *out_delta,
                             float *in_delta, int batch) {
  (void)in;
  (void)out;
  int channels = self->in.channels;
  size_t plane = plane_of(self->in);
  for (int channel = 0; in_delta && channel < channels; channel++) {
    for (int image = 0; image < batch; image++, in_delta += plane) {
      float share = out_delta[image * channels + channel] / (float)plane;
      for (size_t i = 0; i < plane; i++) {
        in_delta[i] = share;
      }
    }
  }
}

static const layer_kind average_kind = {average_forward, average_backward, NULL};

layer average_layer(layer_shape in) {
  return (layer){.kind = &average_kind, .in = in, .out = {in.channels, 1, 1}};
}

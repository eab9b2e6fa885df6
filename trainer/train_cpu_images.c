/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <string.h>

#include "trainer/train_cpu.h"
#include "trainer/train_math.h"

/* The layers that make images smaller, and the one that turns them into rows. */

static size_t plane_of(layer_shape shape) {
  return (size_t)shape.height * (size_t)shape.width;
}

/* ------------------------------------------------------------------- pooling
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

void cpu_pool(const float *in, float *out, size_t planes, layer_shape from, layer_shape to) {
  for (size_t i = 0; i < planes; i++) {
    pool_plane(in + i * plane_of(from), out + i * plane_of(to), from, to);
  }
}

void cpu_pool_back(const float *in, const float *out, const float *out_delta, float *in_delta,
                   size_t planes, layer_shape from, layer_shape to) {
  size_t step_in = plane_of(from), step_out = plane_of(to);
  if (from.height % 2 || from.width % 2) {
    memset(in_delta, 0, planes * step_in * sizeof *in_delta);
  }
  for (size_t i = 0; i < planes; i++) {
    unpool_plane(in + i * step_in, out + i * step_out, out_delta + i * step_out,
                 in_delta + i * step_in, from, to);
  }
}

/* ------------------------------------------------------- [C][B][H*W] and rows */

void cpu_average(const float *in, float *out, layer_shape shape, int batch) {
  size_t plane = plane_of(shape);
  for (int channel = 0; channel < shape.channels; channel++) {
    for (int image = 0; image < batch; image++, in += plane) {
      out[image * shape.channels + channel] = math_sum(in, plane) / (float)plane;
    }
  }
}

void cpu_average_back(const float *out_delta, float *in_delta, layer_shape shape, int batch) {
  size_t plane = plane_of(shape);
  for (int channel = 0; channel < shape.channels; channel++) {
    for (int image = 0; image < batch; image++, in_delta += plane) {
      float share = out_delta[image * shape.channels + channel] / (float)plane;
      for (size_t i = 0; i < plane; i++) {
        in_delta[i] = share;
      }
    }
  }
}

void cpu_flatten(const float *in, float *out, layer_shape shape, int batch) {
  size_t plane = plane_of(shape), features = layer_shape_count(shape);
  for (int channel = 0; channel < shape.channels; channel++) {
    for (int image = 0; image < batch; image++, in += plane) {
      memcpy(out + image * features + channel * plane, in, plane * sizeof *out);
    }
  }
}

void cpu_flatten_back(const float *out_delta, float *in_delta, layer_shape shape, int batch) {
  size_t plane = plane_of(shape), features = layer_shape_count(shape);
  for (int channel = 0; channel < shape.channels; channel++) {
    for (int image = 0; image < batch; image++, in_delta += plane) {
      memcpy(in_delta, out_delta + image * features + channel * plane, plane * sizeof *in_delta);
    }
  }
}

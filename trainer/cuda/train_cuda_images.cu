/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The layers that make images smaller, and the one that turns them into rows. */

#include "trainer/cuda/train_cuda_internal.cuh"
#include "trainer/cuda/train_cuda_table.cuh"

/* -------------------------------------------------------------------- pooling */

typedef struct pool_args {
  train_values in, out_delta, out, in_delta;
  layer_shape from, to;
  uint64_t count; /* of pixels of the output */
} pool_args;

/* The first of the four inputs of a pixel. */
LCOMM_DEVICE uint64_t corner_of(layer_shape from, layer_shape to, uint64_t pixel) {
  uint64_t height = (uint64_t)to.height, width = (uint64_t)to.width;
  uint64_t y = pixel / width % height, x = pixel % width, plane = pixel / width / height;
  return (plane * (uint64_t)from.height + 2 * y) * (uint64_t)from.width + 2 * x;
}

/* Of a value and the next one. */
LCOMM_DEVICE float larger_of(train_values in, uint64_t i) {
  float left = train_get(in, i), right = train_get(in, i + 1);
  return left > right ? left : right;
}

LCOMM_KERNEL(pool_pixels, pool_args) {
  for (TRAIN_EACH(i, a.count)) {
    uint64_t corner = corner_of(a.from, a.to, i);
    float above = larger_of(a.in, corner);
    float below = larger_of(a.in, corner + (uint64_t)a.from.width);
    train_put(a.out, i, above > below ? above : below);
  }
}

/* Of equal inputs the first one takes the gradient. */
LCOMM_KERNEL(unpool_pixels, pool_args) {
  for (TRAIN_EACH(i, a.count)) {
    uint64_t above = corner_of(a.from, a.to, i), below = above + (uint64_t)a.from.width;
    float largest = train_get(a.out, i), delta = train_get(a.out_delta, i);
    int first = train_get(a.in, above) == largest;
    int second = (train_get(a.in, above + 1) == largest) & !first;
    int third = (train_get(a.in, below) == largest) & !(first | second);
    train_put(a.in_delta, above, first ? delta : 0.0f);
    train_put(a.in_delta, above + 1, second ? delta : 0.0f);
    train_put(a.in_delta, below, third ? delta : 0.0f);
    train_put(a.in_delta, below + 1, first | second | third ? 0.0f : delta);
  }
}

static uint64_t pixels_of(layer_shape shape, size_t planes) {
  return (uint64_t)shape.height * (uint64_t)shape.width * planes;
}

static pool_args pool_of(const element *in, const element *out_delta, const element *out,
                         element *in_delta, size_t planes, layer_shape from, layer_shape to) {
  pool_args made = {train_elements(in),
                    train_elements(out_delta),
                    train_elements(out),
                    train_elements(in_delta),
                    from,
                    to,
                    pixels_of(to, planes)};
  return made;
}

void train_cuda_pool(const element *in, element *out, size_t planes, layer_shape from,
                     layer_shape to) {
  pool_args args = pool_of(in, NULL, out, NULL, planes, from, to);
  TRAIN_LAUNCH(pool_pixels, args.count, args);
}

void train_cuda_pool_back(const element *in, const element *out, const element *out_delta,
                          element *in_delta, size_t planes, layer_shape from, layer_shape to) {
  pool_args args = pool_of(in, out_delta, out, in_delta, planes, from, to);
  if (from.height % 2 || from.width % 2) {
    train_cuda_clear(in_delta, pixels_of(from, planes) * train_cuda_element_size());
  }
  TRAIN_LAUNCH(unpool_pixels, args.count, args);
}

/* -------------------------------------------------------- [C][B][H*W] and rows */

typedef struct turn_args {
  train_values in, out;
  uint64_t channels, batch, plane;
} turn_args;

/* A warp for each image of each channel. */
LCOMM_KERNEL(average_plane, turn_args) {
  for (TRAIN_EACH_OF_WARP(i, a.channels * a.batch)) {
    float mean = train_warp_moments(train_from(a.in, i * a.plane), a.plane).mean;
    if (lcomm_lane() == 0) {
      train_put(a.out, i % a.batch * a.channels + i / a.batch, mean);
    }
  }
}

LCOMM_KERNEL(spread_plane, turn_args) {
  for (TRAIN_EACH(i, a.channels * a.batch * a.plane)) {
    uint64_t image = i / a.plane % a.batch, channel = i / a.plane / a.batch;
    train_put(a.out, i, train_get(a.in, image * a.channels + channel) / (float)a.plane);
  }
}

/* Where pixel i of [C][B][H*W] is in [B][C][H*W]. */
LCOMM_DEVICE uint64_t place_of(uint64_t i, uint64_t channels, uint64_t batch, uint64_t plane) {
  uint64_t image = i / plane % batch, channel = i / plane / batch;
  return (image * channels + channel) * plane + i % plane;
}

LCOMM_KERNEL(flatten_pixels, turn_args) {
  for (TRAIN_EACH(i, a.channels * a.batch * a.plane)) {
    train_put(a.out, place_of(i, a.channels, a.batch, a.plane), train_get(a.in, i));
  }
}

LCOMM_KERNEL(unflatten_pixels, turn_args) {
  for (TRAIN_EACH(i, a.channels * a.batch * a.plane)) {
    train_put(a.out, i, train_get(a.in, place_of(i, a.channels, a.batch, a.plane)));
  }
}

static turn_args turn_of(const element *in, element *out, layer_shape shape, int batch) {
  turn_args made = {train_elements(in), train_elements(out), (uint64_t)shape.channels,
                    (uint64_t)batch, pixels_of(shape, 1)};
  return made;
}

static uint64_t count_of(turn_args args) {
  return args.channels * args.batch * args.plane;
}

void train_cuda_average(const element *in, element *out, layer_shape shape, int batch) {
  turn_args args = turn_of(in, out, shape, batch);
  TRAIN_LAUNCH_WARPS(average_plane, args.channels * args.batch, args);
}

void train_cuda_average_back(const element *out_delta, element *in_delta, layer_shape shape,
                             int batch) {
  turn_args args = turn_of(out_delta, in_delta, shape, batch);
  TRAIN_LAUNCH(spread_plane, count_of(args), args);
}

void train_cuda_flatten(const element *in, element *out, layer_shape shape, int batch) {
  turn_args args = turn_of(in, out, shape, batch);
  TRAIN_LAUNCH(flatten_pixels, count_of(args), args);
}

void train_cuda_flatten_back(const element *out_delta, element *in_delta, layer_shape shape,
                             int batch) {
  turn_args args = turn_of(out_delta, in_delta, shape, batch);
  TRAIN_LAUNCH(unflatten_pixels, count_of(args), args);
}

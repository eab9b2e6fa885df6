/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What convolutions need besides products. */

#include "trainer/cuda/train_cuda_internal.cuh"
#include "trainer/cuda/train_cuda_table.cuh"

enum { TAPS = 9 };

typedef struct columns_args {
  train_values in, out; /* nothing in: zeros */
  image_part part;
  uint64_t count;
} columns_args;

LCOMM_DEVICE uint64_t plane_of(layer_shape shape) {
  return (uint64_t)shape.height * (uint64_t)shape.width;
}

/* Where the image of a channel begins, of those of a part. */
LCOMM_DEVICE uint64_t image_at(image_part part, uint64_t channel, uint64_t image) {
  return (channel * (uint64_t)part.batch + (uint64_t)part.first + image) * plane_of(part.shape);
}

/* A pixel of columns[C*9][images][H][W]; x and y are of the image, moved by the tap. */
LCOMM_KERNEL(gather_pixels, columns_args) {
  uint64_t width = (uint64_t)a.part.shape.width, plane = plane_of(a.part.shape);
  for (TRAIN_EACH(i, a.count)) {
    uint64_t pixel = i % plane, image = i / plane % (uint64_t)a.part.images;
    uint64_t row = i / plane / (uint64_t)a.part.images;
    int tap = (int)(row % TAPS);
    int y = (int)(pixel / width) + tap / 3 - 1, x = (int)(pixel % width) + tap % 3 - 1;
    int inside = y >= 0 && y < a.part.shape.height && x >= 0 && x < a.part.shape.width;
    uint64_t from = image_at(a.part, row / TAPS, image) + (uint64_t)y * width + (uint64_t)x;
    train_put(a.out, i, inside ? train_get(a.in, from) : 0.0f);
  }
}

/* A pixel of the images: each tap has it at another place. */
LCOMM_KERNEL(add_pixels, columns_args) {
  uint64_t width = (uint64_t)a.part.shape.width, plane = plane_of(a.part.shape);
  for (TRAIN_EACH(i, a.count)) {
    uint64_t pixel = i % plane, image = i / plane % (uint64_t)a.part.images;
    uint64_t channel = i / plane / (uint64_t)a.part.images;
    uint64_t place = image_at(a.part, channel, image) + pixel;
    float sum = train_get(a.out, place);
    for (int tap = 0; tap < TAPS; tap++) {
      int y = (int)(pixel / width) - (tap / 3 - 1), x = (int)(pixel % width) - (tap % 3 - 1);
      if (y >= 0 && y < a.part.shape.height && x >= 0 && x < a.part.shape.width) {
        uint64_t row = (channel * TAPS + (uint64_t)tap) * (uint64_t)a.part.images + image;
        sum += train_get(a.in, row * plane + (uint64_t)y * width + (uint64_t)x);
      }
    }
    train_put(a.out, place, sum);
  }
}

LCOMM_KERNEL(fill_pixels, columns_args) {
  uint64_t plane = plane_of(a.part.shape), width = (uint64_t)a.part.images * plane;
  for (TRAIN_EACH(i, a.count)) {
    uint64_t channel = i / width;
    uint64_t place = image_at(a.part, channel, 0) + i % width;
    train_put(a.out, place, a.in.at ? train_get(a.in, channel) : 0.0f);
  }
}

static uint64_t pixels_of(image_part part) {
  return (uint64_t)layer_shape_count(part.shape) * (uint64_t)part.images;
}

void train_cuda_gather_columns(const element *in, image_part part, element *columns) {
  columns_args args = {train_elements(in), train_elements(columns), part, pixels_of(part) * TAPS};
  TRAIN_LAUNCH(gather_pixels, args.count, args);
}

void train_cuda_add_columns(element *columns, image_part part, element *in_delta) {
  columns_args args = {train_elements(columns), train_elements(in_delta), part, pixels_of(part)};
  TRAIN_LAUNCH(add_pixels, args.count, args);
}

void train_cuda_fill_channels(const element *values, image_part part, element *out) {
  columns_args args = {train_elements(values), train_elements(out), part, pixels_of(part)};
  TRAIN_LAUNCH(fill_pixels, args.count, args);
}

/* ------------------------------------------------------------------- channels */

typedef struct sums_args {
  train_values in;
  float *out;
  uint64_t channels, width;
} sums_args;

/* A warp for each channel. */
LCOMM_KERNEL(sum_channel, sums_args) {
  for (TRAIN_EACH_OF_WARP(channel, a.channels)) {
    float sum = 0.0f;
    for (uint64_t i = lcomm_lane(); i < a.width; i += LCOMM_WARP) {
      sum += train_get(a.in, channel * a.width + i);
    }
    sum = train_warp_sum(sum);
    if (lcomm_lane() == 0) {
      a.out[channel] = sum;
    }
  }
}

void train_cuda_sum_channels(const element *in, float *sums, int channels, size_t width) {
  sums_args args = {train_elements(in), sums, (uint64_t)channels, width};
  TRAIN_LAUNCH_WARPS(sum_channel, args.channels, args);
}

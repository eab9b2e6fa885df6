/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <stddef.h>
#include <string.h>

#include "trainer/train_cpu.h"
#include "trainer/train_math.h"

/* What convolutions need besides products. */

enum { TAPS = 9 };

static size_t plane_of(layer_shape shape) {
  return (size_t)shape.height * (size_t)shape.width;
}

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

void cpu_gather_columns(const float *in, image_part part, float *columns) {
  size_t plane = plane_of(part.shape);
  for (int row = 0; row < part.shape.channels * TAPS; row++) {
    const float *image = in + ((size_t)(row / TAPS) * part.batch + part.first) * plane;
    tap by = tap_of(row % TAPS, part.shape);
    for (int i = 0; i < part.images; i++, image += plane, columns += plane) {
      move_plane(image, columns, part.shape, by);
    }
  }
}

void cpu_add_columns(float *columns, image_part part, float *in_delta) {
  size_t plane = plane_of(part.shape);
  for (int row = 0; row < part.shape.channels * TAPS; row++) {
    float *image = in_delta + ((size_t)(row / TAPS) * part.batch + part.first) * plane;
    tap by = tap_of(row % TAPS, part.shape);
    for (int i = 0; i < part.images; i++, image += plane, columns += plane) {
      move_back_add(columns, image, part.shape, by);
    }
  }
}

void cpu_fill_channels(const float *values, image_part part, float *out) {
  size_t plane = plane_of(part.shape), width = (size_t)part.images * plane;
  for (int channel = 0; channel < part.shape.channels; channel++) {
    float *row = out + ((size_t)channel * part.batch + part.first) * plane;
    float value = values ? values[channel] : 0.0f;
    for (size_t i = 0; i < width; i++) {
      row[i] = value;
    }
  }
}

void cpu_sum_channels(const float *in, float *sums, int channels, size_t width) {
  for (int channel = 0; channel < channels; channel++) {
    sums[channel] = math_sum(in + (size_t)channel * width, width);
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <cblas.h>
#include <stdbool.h>
#include <string.h>

#include "trainer/layer.h"

/* The columns matrix of CHUNK images stays in the second-level cache; the
 * mini-batch is worked off in such chunks, so it may be of any size. */
enum { CHUNK = 8, TAPS = 9 };

/* One tap of the 3x3 window: the plane of an image moved by (dy, dx). */
typedef struct tap {
  int dy, dx;
} tap;

static tap tap_of(int index) {
  return (tap){index / 3 - 1, index % 3 - 1};
}

/* Zero what a moved plane has beyond the border of the image. */
static void clear_border(float *plane, int height, int width, tap move) {
  if (move.dy < 0) {
    memset(plane, 0, (size_t)width * sizeof *plane);
  }
  if (move.dy > 0) {
    memset(plane + (size_t)(height - 1) * width, 0, (size_t)width * sizeof *plane);
  }
  if (move.dx == 0) {
    return;
  }
  int column = move.dx < 0 ? 0 : width - 1;
  for (int y = 0; y < height; y++) {
    plane[(size_t)y * width + column] = 0.0f;
  }
}

/* The part of a plane that a move keeps inside: how far it goes in memory,
 * and how many values are left. */
typedef struct shift {
  bool forward; /* towards higher addresses */
  size_t distance;
  size_t kept;
} shift;

static shift shift_of(int height, int width, tap move) {
  size_t count = (size_t)height * width;
  ptrdiff_t offset = (ptrdiff_t)move.dy * width + move.dx;
  size_t distance = (size_t)(offset < 0 ? -offset : offset);
  if (distance > count) {
    distance = count; /* an image of one row loses it all */
  }
  return (shift){offset < 0, distance, count - distance};
}

/* to[y][x] = from[y+dy][x+dx], 0 outside. A shift of a whole plane is one
 * copy; what it drags over the left or right edge is cleared afterwards. */
static void shift_plane(const float *from, float *to, int height, int width, tap move) {
  shift by = shift_of(height, width, move);
  if (by.forward) {
    memcpy(to + by.distance, from, by.kept * sizeof *to);
  } else {
    memcpy(to, from + by.distance, by.kept * sizeof *to);
  }
  clear_border(to, height, width, move);
}

/* The transpose of shift_plane, added; `from` loses its border. */
static void unshift_plane_add(float *restrict from, float *restrict to, int height, int width,
                              tap move) {
  shift by = shift_of(height, width, move);
  clear_border(from, height, width, move);
  const float *source = by.forward ? from + by.distance : from;
  float *target = by.forward ? to : to + by.distance;
  for (size_t i = 0; i < by.kept; i++) {
    target[i] += source[i];
  }
}

/* columns[channel*9 + tap][image][pixel] of `images` images from `first` on */
static void gather_columns(const layer *self, const float *in, int batch, int first, int images,
                           float *columns) {
  size_t plane = (size_t)self->in.height * self->in.width;
  for (int channel = 0; channel < self->in.channels; channel++) {
    for (int t = 0; t < TAPS; t++) {
      for (int image = 0; image < images; image++, columns += plane) {
        shift_plane(in + ((size_t)channel * batch + first + image) * plane, columns,
                    self->in.height, self->in.width, tap_of(t));
      }
    }
  }
}

static void scatter_columns(const layer *self, float *columns, int batch, int first, int images,
                            float *in_delta) {
  size_t plane = (size_t)self->in.height * self->in.width;
  for (int channel = 0; channel < self->in.channels; channel++) {
    for (int t = 0; t < TAPS; t++) {
      for (int image = 0; image < images; image++, columns += plane) {
        unshift_plane_add(columns, in_delta + ((size_t)channel * batch + first + image) * plane,
                          self->in.height, self->in.width, tap_of(t));
      }
    }
  }
}

static int chunk_at(int first, int batch) {
  return batch - first < CHUNK ? batch - first : CHUNK;
}

static void conv_forward(layer *self, const float *in, float *out, int batch) {
  int plane = self->in.height * self->in.width;
  int depth = self->in.channels * TAPS;
  int images;
  for (int first = 0; first < batch; first += images) {
    images = chunk_at(first, batch);
    int width = images * plane;
    float *chunk = out + (size_t)first * plane;
    gather_columns(self, in, batch, first, images, self->scratch);
    for (int channel = 0; channel < self->out.channels; channel++) {
      float *row = chunk + (size_t)channel * batch * plane;
      for (int i = 0; i < width; i++) {
        row[i] = self->bias[channel];
      }
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, self->out.channels, width, depth, 1.0f,
                self->weight, depth, self->scratch, width, 1.0f, chunk, batch * plane);
  }
}

/* Independent lanes: short chains of additions and little rounding. */
static float sum_of(const float *values, size_t count) {
  float lanes[16] = {0};
  size_t whole = count - count % 16;
  for (size_t i = 0; i < whole; i += 16) {
    for (int lane = 0; lane < 16; lane++) {
      lanes[lane] += values[i + lane];
    }
  }
  float sum = 0.0f;
  for (int lane = 0; lane < 16; lane++) {
    sum += lanes[lane];
  }
  for (size_t i = whole; i < count; i++) {
    sum += values[i];
  }
  return sum;
}

static void conv_backward(layer *self, const float *in, const float *out, const float *out_delta,
                          float *in_delta, int batch) {
  (void)out;
  int plane = self->in.height * self->in.width;
  int depth = self->in.channels * TAPS;
  size_t row = (size_t)batch * plane;
  for (int channel = 0; channel < self->out.channels; channel++) {
    self->bias_gradient[channel] = sum_of(out_delta + channel * row, row);
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

static const layer_kind conv_kind = {conv_forward, conv_backward};

layer conv_layer(const char *name, layer_shape in, int channels) {
  layer made = {0};
  made.kind = &conv_kind;
  made.name = name;
  made.in = in;
  made.out = (layer_shape){channels, in.height, in.width};
  made.fan_in = in.channels * TAPS;
  made.weight_count = (size_t)channels * made.fan_in;
  made.bias_count = (size_t)channels;
  made.scratch_size = CHUNK * TAPS * layer_shape_count(in) * sizeof(float);
  return made;
}

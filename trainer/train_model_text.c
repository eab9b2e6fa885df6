/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trainer/train_layer.h"
#include "trainer/train_math.h"

/* The layers of text. A mini-batch is B windows of T positions with C channels each; a matrix is
 * written [rows][columns]. */

static size_t rows_of(const layer *self, int batch) {
  return (size_t)batch * (size_t)self->in.height;
}

static layer named(const layer_kind *kind, const char *name, layer_shape in) {
  layer made = {.kind = kind, .in = in, .out = in};
  snprintf(made.name, sizeof made.name, "%s", name);
  return made;
}

static void add_row(float *restrict sum, const float *restrict more, int count) {
  for (int i = 0; i < count; i++) {
    sum[i] += more[i];
  }
}

/* --------------------------------------------------------------- embedding
 *
 *   in [B][T]   weight [256][C]   out [B][T][C]
 *
 *   forward    out[b][t] = weight[in[b][t]]
 *   backward   weight_gradient[in[b][t]] += out_delta[b][t] */

enum { BYTES = 256 };

static void embedding_forward(layer *self, const float *in, float *out, int batch) {
  int channels = self->out.channels;
  size_t rows = rows_of(self, batch);
  for (size_t row = 0; row < rows; row++) {
    memcpy(out + row * channels, self->weight + (size_t)in[row] * channels,
           (size_t)channels * sizeof *out);
  }
}

static void embedding_backward(layer *self, const float *in, const float *out,
                               const float *out_delta, float *in_delta, int batch) {
  (void)out;
  (void)in_delta; /* bytes have no gradient */
  int channels = self->out.channels;
  size_t rows = rows_of(self, batch);
  for (size_t row = 0; row < rows; row++) {
    add_row(self->weight_gradient + (size_t)in[row] * channels, out_delta + row * channels,
            channels);
  }
}

static const layer_kind embedding_kind = {embedding_forward, embedding_backward, NULL};

layer embedding_layer(const char *name, layer_shape in, int channels) {
  layer made = named(&embedding_kind, name, in);
  made.out.channels = channels;
  made.weight_count = (size_t)BYTES * channels;
  made.bound = 1.0f / sqrtf((float)channels);
  return made;
}

/* ---------------------------------------------------------------- position
 *
 *   in [B][T][C]   weight [T][C]   out [B][T][C]
 *
 *   forward    out[b] = in[b] + weight
 *   backward   weight_gradient = sum of out_delta over the windows; in_delta = out_delta */

static void position_forward(layer *self, const float *in, float *out, int batch) {
  size_t count = layer_shape_count(self->in);
  for (int window = 0; window < batch; window++, in += count, out += count) {
    for (size_t i = 0; i < count; i++) {
      out[i] = in[i] + self->weight[i];
    }
  }
}

static void position_backward(layer *self, const float *in, const float *out,
                              const float *out_delta, float *in_delta, int batch) {
  (void)in;
  (void)out;
  size_t count = layer_shape_count(self->in);
  memcpy(self->weight_gradient, out_delta, count * sizeof(float));
  for (int window = 1; window < batch; window++) {
    add_row(self->weight_gradient, out_delta + window * count, (int)count);
  }
  if (in_delta) {
    memcpy(in_delta, out_delta, count * (size_t)batch * sizeof *in_delta);
  }
}

static const layer_kind position_kind = {position_forward, position_backward, NULL};

layer position_layer(const char *name, layer_shape in) {
  layer made = named(&position_kind, name, in);
  made.weight_count = layer_shape_count(in);
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

#define NORM_EPSILON 1e-5f

typedef struct moments {
  float mean, scale; /* scale: 1 / deviation */
} moments;

static moments moments_of(const float *row, int count) {
  float mean = math_sum(row, (size_t)count) / (float)count;
  double square = math_dot(row, row, (size_t)count) / count;
  double variance = square - (double)mean * (double)mean;
  variance = variance > 0.0 ? variance : 0.0;
  return (moments){mean, 1.0f / sqrtf((float)variance + NORM_EPSILON)};
}

static void norm_forward(layer *self, const float *in, float *out, int batch) {
  int channels = self->in.channels;
  size_t rows = rows_of(self, batch);
  for (size_t row = 0; row < rows; row++, in += channels, out += channels) {
    moments of = moments_of(in, channels);
    for (int i = 0; i < channels; i++) {
      out[i] = (in[i] - of.mean) * of.scale * self->weight[i] + self->bias[i];
    }
  }
}

static void norm_row_backward(const layer *self, const float *restrict in,
                              const float *restrict out_delta, float *restrict in_delta) {
  int channels = self->in.channels;
  moments of = moments_of(in, channels);
  float *restrict weight_gradient = self->weight_gradient;
  float *restrict bias_gradient = self->bias_gradient;
  const float *restrict weight = self->weight;
  double sum = 0.0, along = 0.0; /* of d, and of d * x */
  for (int i = 0; i < channels; i++) {
    float x = (in[i] - of.mean) * of.scale;
    weight_gradient[i] += out_delta[i] * x;
    bias_gradient[i] += out_delta[i];
    in_delta[i] = weight[i] * out_delta[i];
    sum += (double)in_delta[i];
    along += (double)(in_delta[i] * x);
  }
  float mean_d = (float)(sum / channels), mean_dx = (float)(along / channels);
  for (int i = 0; i < channels; i++) {
    float x = (in[i] - of.mean) * of.scale;
    in_delta[i] = (in_delta[i] - mean_d - x * mean_dx) * of.scale;
  }
}

static void norm_backward(layer *self, const float *in, const float *out, const float *out_delta,
                          float *in_delta, int batch) {
  (void)out;
  size_t channels = (size_t)self->in.channels, rows = rows_of(self, batch);
  memset(self->weight_gradient, 0, channels * sizeof(float));
  memset(self->bias_gradient, 0, channels * sizeof(float));
  for (size_t row = 0; row < rows; row++) {
    norm_row_backward(self, in + row * channels, out_delta + row * channels,
                      in_delta + row * channels);
  }
}

static const layer_kind norm_kind = {norm_forward, norm_backward, NULL};

layer layer_norm_layer(const char *name, layer_shape in) {
  layer made = named(&norm_kind, name, in);
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

#define GELU_SLOPE 0.79788456f
#define GELU_CUBE 0.044715f

static inline float gelu_share(float x) {
  float u = GELU_SLOPE * (x + GELU_CUBE * x * x * x);
  return 1.0f / (1.0f + math_exp(-2.0f * u));
}

static void gelu_forward(layer *self, const float *restrict in, float *restrict out, int batch) {
  size_t count = layer_shape_count(self->in) * (size_t)batch;
  for (size_t i = 0; i < count; i++) {
    out[i] = in[i] * gelu_share(in[i]);
  }
}

static void gelu_backward(layer *self, const float *restrict in, const float *out,
                          const float *restrict out_delta, float *restrict in_delta, int batch) {
  (void)out;
  size_t count = layer_shape_count(self->in) * (size_t)batch;
  for (size_t i = 0; i < count; i++) {
    float x = in[i], share = gelu_share(x);
    float slope = 2.0f * GELU_SLOPE * (1.0f + 3.0f * GELU_CUBE * x * x);
    in_delta[i] = out_delta[i] * (share + x * share * (1.0f - share) * slope);
  }
}

static const layer_kind gelu_kind = {gelu_forward, gelu_backward, NULL};

layer gelu_layer(layer_shape in) {
  return named(&gelu_kind, "", in);
}

/* --------------------------------------------------------------- tied head
 *
 *   in [B*T][C]   weight [256][C] of the embedding   out [B*T][256]
 *
 *   forward    out = in * weight^T
 *   backward   weight_gradient = out_delta^T * in; in_delta = out_delta * weight */

static void head_forward(layer *self, const float *in, float *out, int batch) {
  int rows = (int)rows_of(self, batch), channels = self->in.channels;
  int classes = self->out.channels;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, classes, channels, 1.0f, in, channels,
              self->weight, channels, 0.0f, out, classes);
}

static void head_backward(layer *self, const float *in, const float *out, const float *out_delta,
                          float *in_delta, int batch) {
  (void)out;
  int rows = (int)rows_of(self, batch), channels = self->in.channels;
  int classes = self->out.channels;
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, classes, channels, rows, 1.0f, out_delta,
              classes, in, channels, 0.0f, self->weight_gradient, channels);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, channels, classes, 1.0f, out_delta,
              classes, self->weight, channels, 0.0f, in_delta, channels);
}

static const layer_kind head_kind = {head_forward, head_backward, NULL};

layer tied_head_layer(layer_shape in, int classes) {
  layer made = named(&head_kind, "", in);
  made.out.channels = classes;
  made.tied = true;
  return made;
}

/* --------------------------------------------------------------------- add
 *
 *   in, skip and out of any shape
 *
 *   forward    out = in + skip
 *   backward   in_delta = out_delta; skip_delta = out_delta */

static void add_forward(layer *self, const float *in, float *out, int batch) {
  size_t count = layer_shape_count(self->in) * (size_t)batch;
  for (size_t i = 0; i < count; i++) {
    out[i] = in[i] + self->skip[i];
  }
}

static void add_backward(layer *self, const float *in, const float *out, const float *out_delta,
                         float *in_delta, int batch) {
  (void)in;
  (void)out;
  size_t size = layer_shape_count(self->in) * (size_t)batch * sizeof(float);
  memcpy(in_delta, out_delta, size);
  memcpy(self->skip_delta, out_delta, size);
}

static const layer_kind add_kind = {add_forward, add_backward, NULL};

layer add_layer(layer_shape in, int from) {
  layer made = named(&add_kind, "", in);
  made.skip_from = from;
  return made;
}

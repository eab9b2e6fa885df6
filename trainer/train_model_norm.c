/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trainer/train_layer.h"
#include "trainer/train_math.h"

/* Batch norm, of N = B*H*W pixels of a channel.
 *
 *   in [C][N]   weight [C]   bias [C]   out [C][N]   statistics [2][C]: means, variances
 *
 *   forward    x = (in - mean) / deviation, of the channel in this mini-batch; out = weight * x +
 * bias statistics move a tenth of the way to mean and variance infer      the same with mean and
 * variance of the statistics backward   weight_gradient = sum of out_delta * x; bias_gradient = sum
 * of out_delta in_delta = weight / deviation * (out_delta - bias_gradient / N
 *                                                         - x * weight_gradient / N)
 *
 * Backward computes mean and deviation again instead of keeping them. */

#define NORM_EPSILON 1e-5f
#define NORM_MEMORY 0.9f

typedef struct channel_moments {
  float mean, variance;
} channel_moments;

static size_t pixels_of(const layer *self, int batch) {
  return (size_t)batch * (size_t)self->in.height * (size_t)self->in.width;
}

static channel_moments moments_of(const float *in, size_t count) {
  double mean = (double)math_sum(in, count) / (double)count;
  double variance = math_dot(in, in, count) / (double)count - mean * mean;
  return (channel_moments){(float)mean, variance > 0.0 ? (float)variance : 0.0f};
}

static float scale_of(channel_moments of) {
  return 1.0f / sqrtf(of.variance + NORM_EPSILON);
}

static void normalise(const layer *self, int channel, channel_moments of, const float *restrict in,
                      float *restrict out, size_t count) {
  float slope = self->weight[channel] * scale_of(of);
  float shift = self->bias[channel] - of.mean * slope;
  for (size_t i = 0; i < count; i++) {
    out[i] = in[i] * slope + shift;
  }
}

static void remember(layer *self, int channel, channel_moments seen) {
  float *mean = &self->statistics[channel];
  float *variance = &self->statistics[self->in.channels + channel];
  *mean = NORM_MEMORY * *mean + (1.0f - NORM_MEMORY) * seen.mean;
  *variance = NORM_MEMORY * *variance + (1.0f - NORM_MEMORY) * seen.variance;
}

static void norm_forward(layer *self, const float *in, float *out, int batch) {
  size_t count = pixels_of(self, batch);
  for (int channel = 0; channel < self->in.channels; channel++, in += count, out += count) {
    channel_moments seen = moments_of(in, count);
    remember(self, channel, seen);
    normalise(self, channel, seen, in, out, count);
  }
}

static void norm_infer(layer *self, const float *in, float *out, int batch) {
  size_t count = pixels_of(self, batch);
  const float *variances = self->statistics + self->in.channels;
  for (int channel = 0; channel < self->in.channels; channel++, in += count, out += count) {
    channel_moments known = {self->statistics[channel], variances[channel]};
    normalise(self, channel, known, in, out, count);
  }
}

static void norm_backward(layer *self, const float *in, const float *out, const float *out_delta,
                          float *in_delta, int batch) {
  (void)out;
  size_t count = pixels_of(self, batch);
  for (int channel = 0; channel < self->in.channels; channel++) {
    channel_moments of = moments_of(in, count);
    float scale = scale_of(of);
    double sum = (double)math_sum(out_delta, count);
    double along = (math_dot(out_delta, in, count) - (double)of.mean * sum) * (double)scale;
    self->bias_gradient[channel] = (float)sum;
    self->weight_gradient[channel] = (float)along;
    float share = (float)(sum / (double)count), slope = (float)(along / (double)count) * scale;
    float factor = self->weight[channel] * scale;
    for (size_t i = 0; in_delta && i < count; i++) {
      in_delta[i] = factor * (out_delta[i] - share - (in[i] - of.mean) * slope);
    }
    in += count;
    out_delta += count;
    in_delta = in_delta ? in_delta + count : NULL;
  }
}

static const layer_kind norm_kind = {norm_forward, norm_backward, norm_infer};

layer batch_norm_layer(const char *name, layer_shape in) {
  layer made = {.kind = &norm_kind, .in = in, .out = in};
  snprintf(made.name, sizeof made.name, "%s", name);
  made.weight_count = (size_t)in.channels;
  made.bias_count = (size_t)in.channels;
  made.statistics_count = 2 * (size_t)in.channels;
  made.centre = 1.0f;
  return made;
}

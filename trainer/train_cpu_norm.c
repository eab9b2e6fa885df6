/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>
#include <string.h>

#include "trainer/train_cpu.h"
#include "trainer/train_math.h"

#define NORM_EPSILON 1e-5f
#define NORM_MEMORY 0.9f

/* ---------------------------------------------------------------- batch norm */

typedef struct channel_moments {
  float mean, variance;
} channel_moments;

static channel_moments channel_moments_of(const float *in, size_t count) {
  double mean = (double)math_sum(in, count) / (double)count;
  double variance = math_dot(in, in, count) / (double)count - mean * mean;
  return (channel_moments){(float)mean, variance > 0.0 ? (float)variance : 0.0f};
}

static float scale_of(channel_moments of) {
  return 1.0f / sqrtf(of.variance + NORM_EPSILON);
}

static void normalise(float weight, float bias, channel_moments of, const float *restrict in,
                      float *restrict out, size_t count) {
  float slope = weight * scale_of(of);
  float shift = bias - of.mean * slope;
  for (size_t i = 0; i < count; i++) {
    out[i] = in[i] * slope + shift;
  }
}

static void remember(float *mean, float *variance, channel_moments seen) {
  *mean = NORM_MEMORY * *mean + (1.0f - NORM_MEMORY) * seen.mean;
  *variance = NORM_MEMORY * *variance + (1.0f - NORM_MEMORY) * seen.variance;
}

void cpu_batch_norm(const float *in, const float *weight, const float *bias, float *statistics,
                    float *out, int channels, size_t count) {
  for (int channel = 0; channel < channels; channel++, in += count, out += count) {
    channel_moments seen = channel_moments_of(in, count);
    remember(&statistics[channel], &statistics[channels + channel], seen);
    normalise(weight[channel], bias[channel], seen, in, out, count);
  }
}

void cpu_batch_norm_infer(const float *in, const float *weight, const float *bias,
                          const float *statistics, float *out, int channels, size_t count) {
  for (int channel = 0; channel < channels; channel++, in += count, out += count) {
    channel_moments known = {statistics[channel], statistics[channels + channel]};
    normalise(weight[channel], bias[channel], known, in, out, count);
  }
}

void cpu_batch_norm_back(const float *in, const float *weight, const float *out_delta,
                         float *weight_gradient, float *bias_gradient, float *in_delta,
                         int channels, size_t count) {
  for (int channel = 0; channel < channels; channel++) {
    channel_moments of = channel_moments_of(in, count);
    float scale = scale_of(of);
    double sum = (double)math_sum(out_delta, count);
    double along = (math_dot(out_delta, in, count) - (double)of.mean * sum) * (double)scale;
    bias_gradient[channel] = (float)sum;
    weight_gradient[channel] = (float)along;
    float share = (float)(sum / (double)count), slope = (float)(along / (double)count) * scale;
    float factor = weight[channel] * scale;
    for (size_t i = 0; in_delta && i < count; i++) {
      in_delta[i] = factor * (out_delta[i] - share - (in[i] - of.mean) * slope);
    }
    in += count;
    out_delta += count;
    in_delta = in_delta ? in_delta + count : NULL;
  }
}

/* ---------------------------------------------------------------- layer norm */

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

void cpu_layer_norm(const float *in, const float *weight, const float *bias, float *out, int rows,
                    int channels) {
  for (int row = 0; row < rows; row++, in += channels, out += channels) {
    moments of = moments_of(in, channels);
    for (int i = 0; i < channels; i++) {
      out[i] = (in[i] - of.mean) * of.scale * weight[i] + bias[i];
    }
  }
}

static void norm_row_back(const float *restrict in, const float *restrict weight,
                          const float *restrict out_delta, float *restrict weight_gradient,
                          float *restrict bias_gradient, float *restrict in_delta, int channels) {
  moments of = moments_of(in, channels);
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

void cpu_layer_norm_back(const float *in, const float *weight, const float *out_delta,
                         float *weight_gradient, float *bias_gradient, float *in_delta, int rows,
                         int channels) {
  memset(weight_gradient, 0, (size_t)channels * sizeof(float));
  memset(bias_gradient, 0, (size_t)channels * sizeof(float));
  for (size_t at = 0; at < (size_t)rows * channels; at += (size_t)channels) {
    norm_row_back(in + at, weight, out_delta + at, weight_gradient, bias_gradient, in_delta + at,
                  channels);
  }
}

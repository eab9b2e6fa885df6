/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Batch norm, a warp for each channel; layer norm, a warp for each row. */

#include "trainer/cuda/train_cuda_internal.cuh"
#include "trainer/cuda/train_cuda_table.cuh"

#define NORM_EPSILON 1e-5f
#define NORM_MEMORY 0.9f

LCOMM_DEVICE float scale_of(float variance) {
  return 1.0f / sqrtf(variance + NORM_EPSILON);
}

/* ----------------------------------------------------------------- batch norm */

typedef struct batch_norm_args {
  const float *in, *weight, *bias, *out_delta;
  float *statistics, *out, *weight_gradient, *bias_gradient, *in_delta;
  uint64_t channels, count;
} batch_norm_args;

LCOMM_DEVICE void normalise(batch_norm_args a, uint64_t channel, train_moments of) {
  float slope = a.weight[channel] * scale_of(of.variance);
  float shift = a.bias[channel] - of.mean * slope;
  const float *in = a.in + channel * a.count;
  float *out = a.out + channel * a.count;
  for (uint64_t i = lcomm_lane(); i < a.count; i += LCOMM_WARP) {
    out[i] = in[i] * slope + shift;
  }
}

LCOMM_KERNEL(norm_channel, batch_norm_args) {
  for (TRAIN_EACH_OF_WARP(channel, a.channels)) {
    train_moments seen = train_warp_moments(a.in + channel * a.count, a.count);
    float *mean = a.statistics + channel, *variance = mean + a.channels;
    if (lcomm_lane() == 0) {
      *mean = NORM_MEMORY * *mean + (1.0f - NORM_MEMORY) * seen.mean;
      *variance = NORM_MEMORY * *variance + (1.0f - NORM_MEMORY) * seen.variance;
    }
    normalise(a, channel, seen);
  }
}

LCOMM_KERNEL(norm_channel_infer, batch_norm_args) {
  for (TRAIN_EACH_OF_WARP(channel, a.channels)) {
    train_moments known = {a.statistics[channel], a.statistics[a.channels + channel]};
    normalise(a, channel, known);
  }
}

LCOMM_KERNEL(norm_channel_back, batch_norm_args) {
  for (TRAIN_EACH_OF_WARP(channel, a.channels)) {
    const float *in = a.in + channel * a.count, *delta = a.out_delta + channel * a.count;
    train_moments of = train_warp_moments(in, a.count);
    float scale = scale_of(of.variance), sum = 0.0f, along = 0.0f;
    for (uint64_t i = lcomm_lane(); i < a.count; i += LCOMM_WARP) {
      sum += delta[i];
      along += delta[i] * ((in[i] - of.mean) * scale);
    }
    sum = train_warp_sum(sum);
    along = train_warp_sum(along);
    if (lcomm_lane() == 0) {
      a.bias_gradient[channel] = sum;
      a.weight_gradient[channel] = along;
    }
    float share = sum / (float)a.count, slope = along / (float)a.count * scale;
    float factor = a.weight[channel] * scale;
    for (uint64_t i = lcomm_lane(); a.in_delta && i < a.count; i += LCOMM_WARP) {
      a.in_delta[channel * a.count + i] = factor * (delta[i] - share - (in[i] - of.mean) * slope);
    }
  }
}

void train_cuda_batch_norm(const float *in, const float *weight, const float *bias,
                           float *statistics, float *out, int channels, size_t count) {
  batch_norm_args args = {
      in, weight, bias, NULL, statistics, out, NULL, NULL, NULL, (uint64_t)channels, count};
  TRAIN_LAUNCH_WARPS(norm_channel, args.channels, args);
}

void train_cuda_batch_norm_infer(const float *in, const float *weight, const float *bias,
                                 const float *statistics, float *out, int channels, size_t count) {
  batch_norm_args args = {in,   weight, bias, NULL, (float *)statistics,
                          out,  NULL,   NULL, NULL, (uint64_t)channels,
                          count};
  TRAIN_LAUNCH_WARPS(norm_channel_infer, args.channels, args);
}

void train_cuda_batch_norm_back(const float *in, const float *weight, const float *out_delta,
                                float *weight_gradient, float *bias_gradient, float *in_delta,
                                int channels, size_t count) {
  batch_norm_args args = {in,   weight,          NULL,          out_delta, NULL,
                          NULL, weight_gradient, bias_gradient, in_delta,  (uint64_t)channels,
                          count};
  TRAIN_LAUNCH_WARPS(norm_channel_back, args.channels, args);
}

/* ----------------------------------------------------------------- layer norm */

typedef struct layer_norm_args {
  const float *in, *weight, *bias, *out_delta;
  float *out;     /* or in_delta */
  float *known;   /* [rows][2] mean and scale, for the gradients */
  float *partial; /* [2][slices][channels] */
  uint64_t rows, channels, slices;
} layer_norm_args;

LCOMM_KERNEL(norm_row, layer_norm_args) {
  for (TRAIN_EACH_OF_WARP(row, a.rows)) {
    const float *in = a.in + row * a.channels;
    train_moments of = train_warp_moments(in, a.channels);
    float scale = scale_of(of.variance);
    for (uint64_t i = lcomm_lane(); i < a.channels; i += LCOMM_WARP) {
      a.out[row * a.channels + i] = (in[i] - of.mean) * scale * a.weight[i] + a.bias[i];
    }
  }
}

LCOMM_KERNEL(norm_row_back, layer_norm_args) {
  for (TRAIN_EACH_OF_WARP(row, a.rows)) {
    const float *in = a.in + row * a.channels, *delta = a.out_delta + row * a.channels;
    train_moments of = train_warp_moments(in, a.channels);
    float scale = scale_of(of.variance), sum = 0.0f, along = 0.0f;
    for (uint64_t i = lcomm_lane(); i < a.channels; i += LCOMM_WARP) {
      float d = a.weight[i] * delta[i];
      sum += d;
      along += d * ((in[i] - of.mean) * scale);
    }
    sum = train_warp_sum(sum) / (float)a.channels;
    along = train_warp_sum(along) / (float)a.channels;
    for (uint64_t i = lcomm_lane(); i < a.channels; i += LCOMM_WARP) {
      float x = (in[i] - of.mean) * scale;
      a.out[row * a.channels + i] = (a.weight[i] * delta[i] - sum - x * along) * scale;
    }
    if (lcomm_lane() == 0) {
      a.known[2 * row] = of.mean;
      a.known[2 * row + 1] = scale;
    }
  }
}

/* A thread for each channel of a slice of the rows. */
LCOMM_KERNEL(norm_gradients, layer_norm_args) {
  for (TRAIN_EACH(i, a.slices * a.channels)) {
    uint64_t slice = i / a.channels, channel = i % a.channels;
    uint64_t first = slice * a.rows / a.slices, end = (slice + 1) * a.rows / a.slices;
    float weight = 0.0f, bias = 0.0f;
    for (uint64_t row = first; row < end; row++) {
      float delta = a.out_delta[row * a.channels + channel];
      weight +=
          delta * ((a.in[row * a.channels + channel] - a.known[2 * row]) * a.known[2 * row + 1]);
      bias += delta;
    }
    a.partial[i] = weight;
    a.partial[a.slices * a.channels + i] = bias;
  }
}

void train_cuda_layer_norm(const float *in, const float *weight, const float *bias, float *out,
                           int rows, int channels) {
  layer_norm_args args = {
      in, weight, bias, NULL, out, NULL, NULL, (uint64_t)rows, (uint64_t)channels, 1};
  TRAIN_LAUNCH_WARPS(norm_row, args.rows, args);
}

void train_cuda_layer_norm_back(const float *in, const float *weight, const float *out_delta,
                                float *weight_gradient, float *bias_gradient, float *in_delta,
                                int rows, int channels) {
  uint32_t slices = train_cuda_slices(rows);
  size_t known = 2 * (size_t)rows, part = (size_t)slices * (size_t)channels;
  float *scratch = (float *)train_cuda_scratch((known + 2 * part) * sizeof(float));
  if (!scratch) {
    return;
  }
  layer_norm_args args = {in,      weight,          NULL,           out_delta,          in_delta,
                          scratch, scratch + known, (uint64_t)rows, (uint64_t)channels, slices};
  TRAIN_LAUNCH_WARPS(norm_row_back, args.rows, args);
  TRAIN_LAUNCH(norm_gradients, (uint64_t)part, args);
  train_cuda_sum_slices(args.partial, weight_gradient, slices, channels);
  train_cuda_sum_slices(args.partial + part, bias_gradient, slices, channels);
}

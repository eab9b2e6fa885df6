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
  train_values in, weight, bias, out_delta, out, in_delta;
  float *statistics, *weight_gradient, *bias_gradient;
  uint64_t channels, count;
} batch_norm_args;

LCOMM_DEVICE void normalise(batch_norm_args a, uint64_t channel, train_moments of) {
  float slope = train_get(a.weight, channel) * scale_of(of.variance);
  float shift = train_get(a.bias, channel) - of.mean * slope;
  train_values in = train_from(a.in, channel * a.count);
  train_values out = train_from(a.out, channel * a.count);
  for (uint64_t i = lcomm_lane(); i < a.count; i += LCOMM_WARP) {
    train_put(out, i, train_get(in, i) * slope + shift);
  }
}

LCOMM_KERNEL(norm_channel, batch_norm_args) {
  for (TRAIN_EACH_OF_WARP(channel, a.channels)) {
    train_moments seen = train_warp_moments(train_from(a.in, channel * a.count), a.count);
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
    train_values in = train_from(a.in, channel * a.count);
    train_values delta = train_from(a.out_delta, channel * a.count);
    train_moments of = train_warp_moments(in, a.count);
    float scale = scale_of(of.variance), sum = 0.0f, along = 0.0f;
    for (uint64_t i = lcomm_lane(); i < a.count; i += LCOMM_WARP) {
      float d = train_get(delta, i);
      sum += d;
      along += d * ((train_get(in, i) - of.mean) * scale);
    }
    sum = train_warp_sum(sum);
    along = train_warp_sum(along);
    if (lcomm_lane() == 0) {
      a.bias_gradient[channel] = sum;
      a.weight_gradient[channel] = along;
    }
    float share = sum / (float)a.count, slope = along / (float)a.count * scale;
    float factor = train_get(a.weight, channel) * scale;
    for (uint64_t i = lcomm_lane(); a.in_delta.at && i < a.count; i += LCOMM_WARP) {
      float along_in = (train_get(in, i) - of.mean) * slope;
      float slant = factor * (train_get(delta, i) - share - along_in);
      train_put(a.in_delta, channel * a.count + i, slant);
    }
  }
}

/* Of what a function does not have, the address is NULL. */
static batch_norm_args batch_norm_of(const element *in, const element *weight, int channels,
                                     size_t count) {
  batch_norm_args made = {};
  made.in = train_elements(in);
  made.weight = train_elements(weight);
  made.channels = (uint64_t)channels;
  made.count = count;
  return made;
}

void train_cuda_batch_norm(const element *in, const element *weight, const element *bias,
                           float *statistics, element *out, int channels, size_t count) {
  batch_norm_args args = batch_norm_of(in, weight, channels, count);
  args.bias = train_elements(bias);
  args.statistics = statistics;
  args.out = train_elements(out);
  TRAIN_LAUNCH_WARPS(norm_channel, args.channels, args);
}

void train_cuda_batch_norm_infer(const element *in, const element *weight, const element *bias,
                                 const float *statistics, element *out, int channels,
                                 size_t count) {
  batch_norm_args args = batch_norm_of(in, weight, channels, count);
  args.bias = train_elements(bias);
  args.statistics = (float *)statistics;
  args.out = train_elements(out);
  TRAIN_LAUNCH_WARPS(norm_channel_infer, args.channels, args);
}

void train_cuda_batch_norm_back(const element *in, const element *weight, const element *out_delta,
                                float *weight_gradient, float *bias_gradient, element *in_delta,
                                int channels, size_t count) {
  batch_norm_args args = batch_norm_of(in, weight, channels, count);
  args.out_delta = train_elements(out_delta);
  args.weight_gradient = weight_gradient;
  args.bias_gradient = bias_gradient;
  args.in_delta = train_elements(in_delta);
  TRAIN_LAUNCH_WARPS(norm_channel_back, args.channels, args);
}

/* ----------------------------------------------------------------- layer norm */

typedef struct layer_norm_args {
  train_values in, weight, bias, out_delta;
  train_values out; /* or in_delta */
  float *known;     /* [rows][2] mean and scale, for the gradients */
  float *partial;   /* [2][slices][channels] */
  uint64_t rows, channels, slices;
} layer_norm_args;

LCOMM_KERNEL(norm_row, layer_norm_args) {
  for (TRAIN_EACH_OF_WARP(row, a.rows)) {
    train_values in = train_from(a.in, row * a.channels);
    train_values out = train_from(a.out, row * a.channels);
    train_moments of = train_warp_moments(in, a.channels);
    float scale = scale_of(of.variance);
    for (uint64_t i = lcomm_lane(); i < a.channels; i += LCOMM_WARP) {
      float x = (train_get(in, i) - of.mean) * scale;
      train_put(out, i, x * train_get(a.weight, i) + train_get(a.bias, i));
    }
  }
}

LCOMM_KERNEL(norm_row_back, layer_norm_args) {
  for (TRAIN_EACH_OF_WARP(row, a.rows)) {
    train_values in = train_from(a.in, row * a.channels);
    train_values delta = train_from(a.out_delta, row * a.channels);
    train_values in_delta = train_from(a.out, row * a.channels);
    train_moments of = train_warp_moments(in, a.channels);
    float scale = scale_of(of.variance), sum = 0.0f, along = 0.0f;
    for (uint64_t i = lcomm_lane(); i < a.channels; i += LCOMM_WARP) {
      float d = train_get(a.weight, i) * train_get(delta, i);
      sum += d;
      along += d * ((train_get(in, i) - of.mean) * scale);
    }
    sum = train_warp_sum(sum) / (float)a.channels;
    along = train_warp_sum(along) / (float)a.channels;
    for (uint64_t i = lcomm_lane(); i < a.channels; i += LCOMM_WARP) {
      float x = (train_get(in, i) - of.mean) * scale;
      float d = train_get(a.weight, i) * train_get(delta, i);
      train_put(in_delta, i, (d - sum - x * along) * scale);
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
      float delta = train_get(a.out_delta, row * a.channels + channel);
      float in = train_get(a.in, row * a.channels + channel);
      weight += delta * ((in - a.known[2 * row]) * a.known[2 * row + 1]);
      bias += delta;
    }
    a.partial[i] = weight;
    a.partial[a.slices * a.channels + i] = bias;
  }
}

static layer_norm_args layer_norm_of(const element *in, const element *weight, const element *out,
                                     int rows, int channels) {
  layer_norm_args made = {};
  made.in = train_elements(in);
  made.weight = train_elements(weight);
  made.out = train_elements(out);
  made.rows = (uint64_t)rows;
  made.channels = (uint64_t)channels;
  return made;
}

void train_cuda_layer_norm(const element *in, const element *weight, const element *bias,
                           element *out, int rows, int channels) {
  layer_norm_args args = layer_norm_of(in, weight, out, rows, channels);
  args.bias = train_elements(bias);
  TRAIN_LAUNCH_WARPS(norm_row, args.rows, args);
}

void train_cuda_layer_norm_back(const element *in, const element *weight, const element *out_delta,
                                float *weight_gradient, float *bias_gradient, element *in_delta,
                                int rows, int channels) {
  uint32_t slices = train_cuda_slices(rows);
  size_t known = 2 * (size_t)rows, part = (size_t)slices * (size_t)channels;
  float *scratch = (float *)train_cuda_scratch((known + 2 * part) * sizeof(float));
  if (!scratch) {
    return;
  }
  layer_norm_args args = layer_norm_of(in, weight, in_delta, rows, channels);
  args.out_delta = train_elements(out_delta);
  args.known = scratch;
  args.partial = scratch + known;
  args.slices = slices;
  TRAIN_LAUNCH_WARPS(norm_row_back, args.rows, args);
  TRAIN_LAUNCH(norm_gradients, (uint64_t)part, args);
  train_cuda_sum_slices(args.partial, weight_gradient, slices, channels);
  train_cuda_sum_slices(args.partial + part, bias_gradient, slices, channels);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Embedding, and the softmax of attention. */

#include "trainer/cuda/train_cuda_internal.cuh"
#include "trainer/cuda/train_cuda_table.cuh"

/* ------------------------------------------------------------------ embedding */

enum { BYTES = 256 };

typedef struct embed_args {
  const float *bytes, *in;
  float *out;
  uint64_t rows, channels;
} embed_args;

LCOMM_KERNEL(embed_bytes, embed_args) {
  for (TRAIN_EACH(i, a.rows * a.channels)) {
    a.out[i] = a.in[(uint64_t)a.bytes[i / a.channels] * a.channels + i % a.channels];
  }
}

/* A thread for each weight looks for its byte, so that all add in the order of the rows. */
LCOMM_KERNEL(embed_gradients, embed_args) {
  for (TRAIN_EACH(i, BYTES * a.channels)) {
    float byte = (float)(i / a.channels), sum = a.out[i];
    for (uint64_t row = 0; row < a.rows; row++) {
      if (a.bytes[row] == byte) {
        sum += a.in[row * a.channels + i % a.channels];
      }
    }
    a.out[i] = sum;
  }
}

void train_cuda_embed(const float *bytes, const float *weight, float *out, int rows, int channels) {
  embed_args args = {bytes, weight, out, (uint64_t)rows, (uint64_t)channels};
  TRAIN_LAUNCH(embed_bytes, args.rows * args.channels, args);
}

void train_cuda_embed_back(const float *bytes, const float *out_delta, float *weight_gradient,
                           int rows, int channels) {
  embed_args args = {bytes, out_delta, weight_gradient, (uint64_t)rows, (uint64_t)channels};
  TRAIN_LAUNCH(embed_gradients, BYTES * args.channels, args);
}

/* -------------------------------------------------------------------- softmax */

typedef struct softmax_args {
  const float *p;
  float *scores; /* or P_delta */
  float scale;
  uint64_t positions, rows;
} softmax_args;

/* A warp for each row, of which the scores up to its own position count. */
LCOMM_KERNEL(softmax_rows, softmax_args) {
  for (TRAIN_EACH_OF_WARP(row, a.rows)) {
    float *scores = a.scores + row * a.positions;
    uint64_t count = row % a.positions + 1;
    float largest = scores[0], sum = 0.0f;
    for (uint64_t i = lcomm_lane(); i < count; i += LCOMM_WARP) {
      largest = scores[i] > largest ? scores[i] : largest;
    }
    largest = train_warp_max(largest);
    for (uint64_t i = lcomm_lane(); i < count; i += LCOMM_WARP) {
      scores[i] = expf(scores[i] - largest);
      sum += scores[i];
    }
    float share = 1.0f / train_warp_sum(sum);
    for (uint64_t i = lcomm_lane(); i < a.positions; i += LCOMM_WARP) {
      scores[i] = i < count ? scores[i] * share : 0.0f;
    }
  }
}

LCOMM_KERNEL(softmax_slopes, softmax_args) {
  for (TRAIN_EACH_OF_WARP(row, a.rows)) {
    const float *p = a.p + row * a.positions;
    float *delta = a.scores + row * a.positions, sum = 0.0f;
    for (uint64_t i = lcomm_lane(); i <= row % a.positions; i += LCOMM_WARP) {
      sum += p[i] * delta[i];
    }
    sum = train_warp_sum(sum);
    for (uint64_t i = lcomm_lane(); i < a.positions; i += LCOMM_WARP) {
      delta[i] = p[i] * (delta[i] - sum) * a.scale;
    }
  }
}

void train_cuda_softmax(float *scores, int positions, int count) {
  softmax_args args = {NULL, scores, 1.0f, (uint64_t)positions,
                       (uint64_t)positions * (uint64_t)count};
  TRAIN_LAUNCH_WARPS(softmax_rows, args.rows, args);
}

void train_cuda_softmax_back(const float *p, float *delta, float scale, int positions, int count) {
  softmax_args args = {p, delta, scale, (uint64_t)positions, (uint64_t)positions * (uint64_t)count};
  TRAIN_LAUNCH_WARPS(softmax_slopes, args.rows, args);
}

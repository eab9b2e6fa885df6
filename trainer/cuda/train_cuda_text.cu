/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Embedding, and the softmax of attention. */

#include "trainer/cuda/train_cuda_internal.cuh"
#include "trainer/cuda/train_cuda_table.cuh"

/* ------------------------------------------------------------------ embedding */

enum { BYTES = 256 };

typedef struct embed_args {
  train_values bytes, in, out;
  uint64_t rows, channels;
} embed_args;

LCOMM_KERNEL(embed_bytes, embed_args) {
  for (TRAIN_EACH(i, a.rows * a.channels)) {
    uint64_t byte = (uint64_t)train_get(a.bytes, i / a.channels);
    train_put(a.out, i, train_get(a.in, byte * a.channels + i % a.channels));
  }
}

/* A thread for each weight looks for its byte, so that all add in the order of the rows. */
LCOMM_KERNEL(embed_gradients, embed_args) {
  for (TRAIN_EACH(i, BYTES * a.channels)) {
    float byte = (float)(i / a.channels), sum = train_get(a.out, i);
    for (uint64_t row = 0; row < a.rows; row++) {
      if (train_get(a.bytes, row) == byte) {
        sum += train_get(a.in, row * a.channels + i % a.channels);
      }
    }
    train_put(a.out, i, sum);
  }
}

static embed_args embed_of(const element *bytes, const element *in, train_values out, int rows,
                           int channels) {
  embed_args made = {train_elements(bytes), train_elements(in), out, (uint64_t)rows,
                     (uint64_t)channels};
  return made;
}

void train_cuda_embed(const element *bytes, const element *weight, element *out, int rows,
                      int channels) {
  embed_args args = embed_of(bytes, weight, train_elements(out), rows, channels);
  TRAIN_LAUNCH(embed_bytes, args.rows * args.channels, args);
}

void train_cuda_embed_back(const element *bytes, const element *out_delta, float *weight_gradient,
                           int rows, int channels) {
  embed_args args = embed_of(bytes, out_delta, train_floats(weight_gradient), rows, channels);
  TRAIN_LAUNCH(embed_gradients, BYTES * args.channels, args);
}

/* -------------------------------------------------------------------- softmax */

typedef struct softmax_args {
  train_values p;
  train_values scores; /* or P_delta */
  float scale;
  uint64_t positions, rows;
} softmax_args;

/* A warp for each row, of which the scores up to its own position count. */
LCOMM_KERNEL(softmax_rows, softmax_args) {
  for (TRAIN_EACH_OF_WARP(row, a.rows)) {
    train_values scores = train_from(a.scores, row * a.positions);
    uint64_t count = row % a.positions + 1;
    float largest = train_get(scores, 0), sum = 0.0f;
    for (uint64_t i = lcomm_lane(); i < count; i += LCOMM_WARP) {
      float score = train_get(scores, i);
      largest = score > largest ? score : largest;
    }
    largest = train_warp_max(largest);
    for (uint64_t i = lcomm_lane(); i < count; i += LCOMM_WARP) {
      sum += expf(train_get(scores, i) - largest);
    }
    float share = 1.0f / train_warp_sum(sum);
    for (uint64_t i = lcomm_lane(); i < a.positions; i += LCOMM_WARP) {
      float score = i < count ? expf(train_get(scores, i) - largest) : 0.0f;
      train_put(scores, i, score * share);
    }
  }
}

LCOMM_KERNEL(softmax_slopes, softmax_args) {
  for (TRAIN_EACH_OF_WARP(row, a.rows)) {
    train_values p = train_from(a.p, row * a.positions);
    train_values delta = train_from(a.scores, row * a.positions);
    float sum = 0.0f;
    for (uint64_t i = lcomm_lane(); i <= row % a.positions; i += LCOMM_WARP) {
      sum += train_get(p, i) * train_get(delta, i);
    }
    sum = train_warp_sum(sum);
    for (uint64_t i = lcomm_lane(); i < a.positions; i += LCOMM_WARP) {
      train_put(delta, i, train_get(p, i) * (train_get(delta, i) - sum) * a.scale);
    }
  }
}

void train_cuda_softmax(element *scores, int positions, int count) {
  softmax_args args = {train_elements(NULL), train_elements(scores), 1.0f, (uint64_t)positions,
                       (uint64_t)positions * (uint64_t)count};
  TRAIN_LAUNCH_WARPS(softmax_rows, args.rows, args);
}

void train_cuda_softmax_back(const element *p, element *delta, float scale, int positions,
                             int count) {
  softmax_args args = {train_elements(p), train_elements(delta), scale, (uint64_t)positions,
                       (uint64_t)positions * (uint64_t)count};
  TRAIN_LAUNCH_WARPS(softmax_slopes, args.rows, args);
}

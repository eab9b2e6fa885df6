/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <string.h>

#include "trainer/train_cpu.h"
#include "trainer/train_math.h"

/* ----------------------------------------------------------------- embedding */

void cpu_embed(const float *bytes, const float *weight, float *out, int rows, int channels) {
  for (int row = 0; row < rows; row++) {
    memcpy(out + (size_t)row * channels, weight + (size_t)bytes[row] * channels,
           (size_t)channels * sizeof *out);
  }
}

void cpu_embed_back(const float *bytes, const float *out_delta, float *weight_gradient, int rows,
                    int channels) {
  for (int row = 0; row < rows; row++) {
    cpu_accumulate(weight_gradient + (size_t)bytes[row] * channels,
                   out_delta + (size_t)row * channels, (size_t)channels);
  }
}

/* ------------------------------------------------------------------- softmax */

/* The first `count` scores of a row become probabilities, the others 0. */
static void softmax_row(float *row, int count, int all) {
  float largest = row[0];
  for (int i = 1; i < count; i++) {
    largest = row[i] > largest ? row[i] : largest;
  }
  for (int i = 0; i < count; i++) {
    row[i] = math_exp(row[i] - largest);
  }
  float share = 1.0f / math_sum(row, (size_t)count);
  for (int i = 0; i < count; i++) {
    row[i] *= share;
  }
  memset(row + count, 0, (size_t)(all - count) * sizeof *row);
}

void cpu_softmax(float *scores, int positions, int count) {
  for (int at = 0; at < positions * count; at++) {
    softmax_row(scores + (size_t)at * positions, at % positions + 1, positions);
  }
}

void cpu_softmax_back(const float *p, float *delta, float scale, int positions, int count) {
  for (int row = 0; row < positions * count; row++, p += positions, delta += positions) {
    float sum = (float)math_dot(p, delta, (size_t)(row % positions) + 1);
    for (int i = 0; i < positions; i++) { /* behind the position p is 0 */
      delta[i] = p[i] * (delta[i] - sum) * scale;
    }
  }
}

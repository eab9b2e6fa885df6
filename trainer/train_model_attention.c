/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "trainer/train_layer.h"
#include "trainer/train_math.h"

/* Causal attention. A row of the input holds the queries, keys and values of a position, those of
 * H heads of D channels each; C = H*D.
 *
 *   in [B][T][3][H][D]   out [B][T][H][D]
 *
 * Of each window and head, with Q, K, V [T][D] as parts of the input 3*C apart:
 *
 *   forward    S = Q * K^T / sqrt(D)               [T][T]
 *              P = softmax of each row of S up to its own position, 0 behind
 *              out = P * V                         [T][D]
 *   backward   V_delta = P^T * out_delta           [T][D]
 *              P_delta = out_delta * V^T           [T][T]
 *              S_delta = P * (P_delta - sum over the row of P * P_delta) / sqrt(D)
 *              Q_delta = S_delta * K, K_delta = S_delta^T * Q
 *
 * Backward computes P again: it would be the largest of all activations. The scratch is two
 * matrices [T][T]. */

typedef struct head_view {
  int positions, channels; /* T and D */
  int in_step, out_step;   /* 3*C and C */
  size_t in_at, out_at;    /* of the first query, of the first output */
  size_t key, value;       /* of keys and values, behind the queries */
  float scale;
} head_view;

static head_view view_of(const layer *self, int window, int head) {
  head_view made = {.positions = self->in.height, .channels = self->out.channels / self->heads};
  made.in_step = self->in.channels;
  made.out_step = self->out.channels;
  size_t row = (size_t)window * (size_t)made.positions, within = (size_t)head * made.channels;
  made.in_at = row * (size_t)made.in_step + within;
  made.out_at = row * (size_t)made.out_step + within;
  made.key = (size_t)self->out.channels;
  made.value = 2 * made.key;
  made.scale = 1.0f / sqrtf((float)made.channels);
  return made;
}

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

/* P of a head. */
static void probabilities(head_view of, const float *in, float *p) {
  int n = of.positions;
  const float *query = in + of.in_at;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, n, of.channels, of.scale, query,
              of.in_step, query + of.key, of.in_step, 0.0f, p, n);
  for (int row = 0; row < n; row++) {
    softmax_row(p + (size_t)row * n, row + 1, n);
  }
}

static void attention_forward(layer *self, const float *in, float *out, int batch) {
  float *p = self->scratch;
  for (int window = 0; window < batch; window++) {
    for (int head = 0; head < self->heads; head++) {
      head_view of = view_of(self, window, head);
      int n = of.positions;
      probabilities(of, in, p);
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, of.channels, n, 1.0f, p, n,
                  in + of.in_at + of.value, of.in_step, 0.0f, out + of.out_at, of.out_step);
    }
  }
}

/* S_delta in the place of P_delta. */
static void softmax_backward(head_view of, const float *p, float *delta) {
  for (int row = 0; row < of.positions; row++, p += of.positions, delta += of.positions) {
    float sum = (float)math_dot(p, delta, (size_t)row + 1);
    for (int i = 0; i < of.positions; i++) { /* behind the position p is 0 */
      delta[i] = p[i] * (delta[i] - sum) * of.scale;
    }
  }
}

static void head_backward(head_view of, const float *in, const float *out_delta, float *in_delta,
                          float *p, float *p_delta) {
  int n = of.positions, d = of.channels;
  const float *query = in + of.in_at, *out = out_delta + of.out_at;
  float *query_delta = in_delta + of.in_at;
  probabilities(of, in, p);
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, d, n, 1.0f, p, n, out, of.out_step, 0.0f,
              query_delta + of.value, of.in_step);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, n, d, 1.0f, out, of.out_step,
              query + of.value, of.in_step, 0.0f, p_delta, n);
  softmax_backward(of, p, p_delta);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, d, n, 1.0f, p_delta, n, query + of.key,
              of.in_step, 0.0f, query_delta, of.in_step);
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, d, n, 1.0f, p_delta, n, query, of.in_step,
              0.0f, query_delta + of.key, of.in_step);
}

static void attention_backward(layer *self, const float *in, const float *out,
                               const float *out_delta, float *in_delta, int batch) {
  (void)out;
  float *p = self->scratch;
  float *p_delta = p + (size_t)self->in.height * (size_t)self->in.height;
  for (int window = 0; window < batch; window++) {
    for (int head = 0; head < self->heads; head++) {
      head_backward(view_of(self, window, head), in, out_delta, in_delta, p, p_delta);
    }
  }
}

static const layer_kind attention_kind = {attention_forward, attention_backward, NULL};

layer attention_layer(layer_shape in, int heads) {
  layer made = {.kind = &attention_kind, .in = in, .out = in, .heads = heads};
  made.out.channels = in.channels / 3;
  made.scratch_size = 2 * (size_t)in.height * (size_t)in.height * sizeof(float);
  return made;
}

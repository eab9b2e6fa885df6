/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>

#include "trainer/train_layer.h"

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
 * matrices [T][T] of each head. */

/* Some heads of a window, side by side. */
typedef struct heads_view {
  const backend *on;
  int positions, channels, count; /* T, D and how many */
  int in_step, out_step;          /* 3*C and C */
  size_t in_at, out_at;           /* of the first query, of the first output */
  size_t key, value;              /* of keys and values, behind the queries */
  float scale;
} heads_view;

static heads_view view_of(const layer *self, int window, int head) {
  heads_view made = {.on = self->on, .positions = self->in.height};
  made.channels = self->out.channels / self->heads;
  int left = self->heads - head;
  made.count = left < self->on->heads_at_once ? left : self->on->heads_at_once;
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

/* A part [T][D] of the input, or of the output, and scores [T][T]; of each head. */
static matrix input_part(const heads_view *of, const element *values) {
  return (matrix){.values = values, .step = of->in_step, .next = (size_t)of->channels};
}

static matrix output_part(const heads_view *of, const element *values) {
  return (matrix){.values = values, .step = of->out_step, .next = (size_t)of->channels};
}

static matrix scores_of(const heads_view *of, const element *values) {
  size_t size = (size_t)of->positions * (size_t)of->positions;
  return (matrix){.values = values, .step = of->positions, .next = size};
}

static matrix transposed(matrix of) {
  of.transposed = true;
  return of;
}

/* out[T][T] = scale * a * b of channels; out[T][D] = a * b of scores. */
static void multiply_channels(const heads_view *of, matrix a, matrix b, float scale, element *out) {
  matrix to = scores_of(of, out);
  of->on->multiply(&(product){.rows = of->positions,
                              .columns = of->positions,
                              .depth = of->channels,
                              .a = a,
                              .b = transposed(b),
                              .out = out,
                              .step = to.step,
                              .next = to.next,
                              .scale = scale,
                              .count = of->count});
}

static void multiply_scores(const heads_view *of, matrix scores, matrix b, matrix to,
                            element *out) {
  of->on->multiply(&(product){.rows = of->positions,
                              .columns = of->channels,
                              .depth = of->positions,
                              .a = scores,
                              .b = b,
                              .out = out,
                              .step = to.step,
                              .next = to.next,
                              .scale = 1.0f,
                              .count = of->count});
}

static element *after(const heads_view *of, const element *first, size_t count) {
  return element_at(of->on, first, count);
}

/* P of the heads. */
static void probabilities(const heads_view *of, const element *in, element *p) {
  const element *query = after(of, in, of->in_at), *key = after(of, query, of->key);
  multiply_channels(of, input_part(of, query), input_part(of, key), of->scale, p);
  of->on->softmax(p, of->positions, of->count);
}

static void heads_forward(const heads_view *of, const element *in, element *out, element *p) {
  element *to = after(of, out, of->out_at);
  probabilities(of, in, p);
  const element *value = after(of, in, of->in_at + of->value);
  multiply_scores(of, scores_of(of, p), input_part(of, value), output_part(of, to), to);
}

static void attention_forward(layer *self, const element *in, element *out, int batch) {
  for (int window = 0; window < batch; window++) {
    for (int head = 0; head < self->heads; head += self->on->heads_at_once) {
      heads_view of = view_of(self, window, head);
      heads_forward(&of, in, out, self->scratch);
    }
  }
}

static void heads_backward(const heads_view *of, const element *in, const element *out_delta,
                           element *in_delta, element *p, element *p_delta) {
  const element *query = after(of, in, of->in_at), *delta = after(of, out_delta, of->out_at);
  const element *key = after(of, query, of->key), *value = after(of, query, of->value);
  element *query_delta = after(of, in_delta, of->in_at);
  element *key_delta = after(of, query_delta, of->key);
  element *value_delta = after(of, query_delta, of->value);
  matrix to = input_part(of, query_delta); /* those of keys and values lie alike */
  probabilities(of, in, p);
  multiply_scores(of, transposed(scores_of(of, p)), output_part(of, delta), to, value_delta);
  multiply_channels(of, output_part(of, delta), input_part(of, value), 1.0f, p_delta);
  of->on->softmax_back(p, p_delta, of->scale, of->positions, of->count);
  multiply_scores(of, scores_of(of, p_delta), input_part(of, key), to, query_delta);
  multiply_scores(of, transposed(scores_of(of, p_delta)), input_part(of, query), to, key_delta);
}

static void attention_backward(layer *self, const element *in, const element *out,
                               const element *out_delta, element *in_delta, int batch) {
  (void)out;
  element *p = self->scratch;
  size_t scores = (size_t)self->heads * (size_t)self->in.height * (size_t)self->in.height;
  element *p_delta = element_at(self->on, p, scores);
  for (int window = 0; window < batch; window++) {
    for (int head = 0; head < self->heads; head += self->on->heads_at_once) {
      heads_view of = view_of(self, window, head);
      heads_backward(&of, in, out_delta, in_delta, p, p_delta);
    }
  }
}

static const layer_kind attention_kind = {attention_forward, attention_backward, NULL};

layer attention_layer(layer_shape in, int heads) {
  layer made = layer_begin(&attention_kind, "", in);
  made.heads = heads;
  made.out.channels = in.channels / 3;
  made.scratch_count = 2 * (size_t)heads * (size_t)in.height * (size_t)in.height;
  return made;
}

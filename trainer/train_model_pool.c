/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_layer.h"

/* The layers that make images smaller: the largest of four pixels, and the mean of all. */

/* ----------------------------------------------------------------- pooling
 *
 *   in [C][B][H][W]   out [C][B][H/2][W/2]
 *
 * Of equal inputs the first one takes the gradient. */

static void pool_forward(layer *self, const element *in, element *out, int batch) {
  self->on->pool(in, out, (size_t)self->in.channels * batch, self->in, self->out);
}

static void pool_backward(layer *self, const element *in, const element *out,
                          const element *out_delta, element *in_delta, int batch) {
  if (in_delta) {
    self->on->pool_back(in, out, out_delta, in_delta, (size_t)self->in.channels * batch, self->in,
                        self->out);
  }
}

static const layer_kind pool_kind = {pool_forward, pool_backward, NULL};

layer pool_layer(layer_shape in) {
  layer_shape out = {in.channels, in.height / 2, in.width / 2};
  return (layer){.kind = &pool_kind, .in = in, .out = out};
}

/* ----------------------------------------------------------------- average
 *
 *   in [C][B][H][W]   out [B][C]
 *
 *   forward    out[b][c] = mean of in[c][b]
 *   backward   in_delta[c][b] = out_delta[b][c] / (H*W), at each pixel */

static void average_forward(layer *self, const element *in, element *out, int batch) {
  self->on->average(in, out, self->in, batch);
}

static void average_backward(layer *self, const element *in, const element *out,
                             const element *out_delta, element *in_delta, int batch) {
  (void)in;
  (void)out;
  if (in_delta) {
    self->on->average_back(out_delta, in_delta, self->in, batch);
  }
}

static const layer_kind average_kind = {average_forward, average_backward, NULL};

layer average_layer(layer_shape in) {
  return (layer){.kind = &average_kind, .in = in, .out = {in.channels, 1, 1}};
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_layer.h"

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

static size_t pixels_of(const layer *self, int batch) {
  return (size_t)batch * (size_t)self->in.height * (size_t)self->in.width;
}

static void norm_forward(layer *self, const element *in, element *out, int batch) {
  self->on->batch_norm(in, self->weight, self->bias, self->statistics, out, self->in.channels,
                       pixels_of(self, batch));
}

static void norm_infer(layer *self, const element *in, element *out, int batch) {
  self->on->batch_norm_infer(in, self->weight, self->bias, self->statistics, out, self->in.channels,
                             pixels_of(self, batch));
}

static void norm_backward(layer *self, const element *in, const element *out,
                          const element *out_delta, element *in_delta, int batch) {
  (void)out;
  self->on->batch_norm_back(in, self->weight, out_delta, self->weight_gradient, self->bias_gradient,
                            in_delta, self->in.channels, pixels_of(self, batch));
}

static const layer_kind norm_kind = {norm_forward, norm_backward, norm_infer};

layer batch_norm_layer(const char *name, layer_shape in) {
  layer made = layer_begin(&norm_kind, name, in);
  made.weight_count = (size_t)in.channels;
  made.bias_count = (size_t)in.channels;
  made.statistics_count = 2 * (size_t)in.channels;
  made.centre = 1.0f;
  return made;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <string.h>

#include "trainer/layer.h"

static void relu_forward(layer *self, const float *in, float *out, int batch) {
  size_t count = layer_shape_count(self->in) * batch;
  for (size_t i = 0; i < count; i++) {
    out[i] = in[i] < 0.0f ? 0.0f : in[i]; /* keeps a NaN, so that it is seen */
  }
}

static void relu_backward(layer *self, const float *in, const float *out, const float *out_delta,
                          float *in_delta, int batch) {
  (void)in;
  if (!in_delta) {
    return;
  }
  size_t count = layer_shape_count(self->in) * batch;
  for (size_t i = 0; i < count; i++) {
    in_delta[i] = out[i] > 0.0f ? out_delta[i] : 0.0f;
  }
}

static const layer_kind relu_kind = {relu_forward, relu_backward};

layer relu_layer(layer_shape in) {
  layer made = {0};
  made.kind = &relu_kind;
  made.in = in;
  made.out = in;
  return made;
}

static void flatten_forward(layer *self, const float *in, float *out, int batch) {
  size_t plane = (size_t)self->in.height * self->in.width;
  size_t features = layer_shape_count(self->in);
  for (int channel = 0; channel < self->in.channels; channel++) {
    for (int image = 0; image < batch; image++, in += plane) {
      memcpy(out + image * features + channel * plane, in, plane * sizeof *out);
    }
  }
}

static void flatten_backward(layer *self, const float *in, const float *out, const float *out_delta,
                             float *in_delta, int batch) {
  (void)in;
  (void)out;
  if (!in_delta) {
    return;
  }
  size_t plane = (size_t)self->in.height * self->in.width;
  size_t features = layer_shape_count(self->in);
  for (int channel = 0; channel < self->in.channels; channel++) {
    for (int image = 0; image < batch; image++, in_delta += plane) {
      memcpy(in_delta, out_delta + image * features + channel * plane, plane * sizeof *in_delta);
    }
  }
}

static const layer_kind flatten_kind = {flatten_forward, flatten_backward};

layer flatten_layer(layer_shape in) {
  layer made = {0};
  made.kind = &flatten_kind;
  made.in = in;
  made.out = (layer_shape){(int)layer_shape_count(in), 1, 1};
  return made;
}

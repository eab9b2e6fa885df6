/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <cblas.h>
#include <string.h>

#include "trainer/layer.h"

/* weight[output][input], activations [image][feature] */

static void dense_forward(layer *self, const float *in, float *out, int batch) {
  int inputs = self->in.channels;
  int outputs = self->out.channels;
  for (int image = 0; image < batch; image++) {
    memcpy(out + (size_t)image * outputs, self->bias, (size_t)outputs * sizeof *out);
  }
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, batch, outputs, inputs, 1.0f, in, inputs,
              self->weight, inputs, 1.0f, out, outputs);
}

static void dense_backward(layer *self, const float *in, const float *out, const float *out_delta,
                           float *in_delta, int batch) {
  (void)out;
  int inputs = self->in.channels;
  int outputs = self->out.channels;
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, outputs, inputs, batch, 1.0f, out_delta,
              outputs, in, inputs, 0.0f, self->weight_gradient, inputs);
  memset(self->bias_gradient, 0, (size_t)outputs * sizeof(float));
  for (int image = 0; image < batch; image++) {
    for (int output = 0; output < outputs; output++) {
      self->bias_gradient[output] += out_delta[(size_t)image * outputs + output];
    }
  }
  if (in_delta) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, batch, inputs, outputs, 1.0f, out_delta,
                outputs, self->weight, inputs, 0.0f, in_delta, inputs);
  }
}

static const layer_kind dense_kind = {dense_forward, dense_backward};

layer dense_layer(const char *name, layer_shape in, int features) {
  int inputs = (int)layer_shape_count(in);
  layer made = {0};
  made.kind = &dense_kind;
  made.name = name;
  made.in = (layer_shape){inputs, 1, 1};
  made.out = (layer_shape){features, 1, 1};
  made.fan_in = inputs;
  made.weight_count = (size_t)features * inputs;
  made.bias_count = (size_t)features;
  return made;
}

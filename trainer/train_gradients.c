/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_gradients.h"

#include <string.h>

/* A policy may send matrices by low rank. */
static lcomm_status add_tensor(gradients *self, int number, const model_parameter *of) {
  void *data = self->wire ? (void *)(self->wire + of->offset) : self->values + of->offset;
  lcomm_dtype dtype = precision_dtype(self->precision);
  lcomm_tensor **made = &self->tensors[number];
  return of->rows > 0
             ? lcomm_tensor_add_shaped(self->comm, of->name, data, of->rows, of->count / of->rows,
                                       dtype, LCOMM_AVG, made)
             : lcomm_tensor_add(self->comm, of->name, data, of->count, dtype, LCOMM_AVG, made);
}

static lcomm_status make_wire(gradients *self) {
  if (self->precision == PRECISION_FP32) {
    return LCOMM_OK;
  }
  self->wire = self->on->get_sent(self->offsets[self->count] * sizeof(uint16_t));
  return self->wire ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

/* A tensor has a name, a place, and a size or a shape. The name is what a policy can
 * exempt (exempt=*.bias), the place must stay until lcomm_destroy(). */
int gradients_register(gradients *made, lcomm_comm *comm, const model *net, failure *why) {
  made->comm = comm;
  made->on = net->on;
  made->precision = net->precision;
  made->values = net->gradients;
  made->count = net->parameter_count;
  for (int i = 0; i < net->parameter_count; i++) {
    made->offsets[i] = net->parameters[i].offset;
  }
  made->offsets[made->count] = net->weight_count;
  lcomm_status status = make_wire(made);
  for (int i = 0; i < net->parameter_count; i++) {
    if (status == LCOMM_OK) {
      status = add_tensor(made, i, &net->parameters[i]);
    }
    if (peers_check(comm, status, net->parameters[i].name, why)) {
      lcomm_abort(comm, why->text);
      return -1;
    }
  }
  return 0;
}

void gradients_free(gradients *self) {
  if (self->on) {
    self->on->free_sent(self->wire);
  }
  self->wire = NULL;
}

/* Error feedback adds what it remembers to gradients of later steps, which may have another scale.
 * So it sees all of them as of this one; it is not 1, because fp16 travels inside a node, where
 * small gradients are zero without a scale. */
#define REMEMBERED_SCALE 1024.0

lcomm_status gradients_scale(gradients *self, float scale) {
  lcomm_status status = LCOMM_OK;
  double before = REMEMBERED_SCALE / (double)scale;
  for (int i = 0; self->precision == PRECISION_FP16 && i < self->count; i++) {
    status =
        first_error(status, lcomm_tensor_scale(self->comm, self->tensors[i], before, 1.0 / before));
  }
  return status;
}

void gradients_codecs(const gradients *self, int count, policy_codec *codecs) {
  for (int i = 0; i < count; i++) {
    const lcomm_tensor *tensor = self->tensors[i];
    strcpy(codecs[i], "none");
    if (lcomm_nodes(self->comm) > 1) {
      lcomm_tensor_codec(self->comm, tensor, LCOMM_LINK_NET, codecs[i], sizeof codecs[i]);
    }
    if (strcmp(codecs[i], "none") == 0) {
      lcomm_tensor_codec(self->comm, tensor, LCOMM_LINK_SHM, codecs[i], sizeof codecs[i]);
    }
  }
}

lcomm_status first_error(lcomm_status earlier, lcomm_status later) {
  return earlier == LCOMM_OK ? later : earlier;
}

void gradients_begin(gradients *self) {
  self->status = LCOMM_OK;
}

/* On a device the gradient is there when the stream has come to this. */
static lcomm_status ready(const gradients *self, lcomm_tensor *tensor) {
  return self->on->is_host ? lcomm_tensor_ready(self->comm, tensor)
                           : lcomm_tensor_ready_on_stream(self->comm, tensor, self->on->stream());
}

/* libcomm gathers tensors in buckets and starts a bucket when its last tensor
 * is ready; lcomm_progress() moves those that are in flight, so that they
 * travel while backward goes on with the next layer. */
void gradients_ready(void *context, int first, int count) {
  gradients *self = context;
  for (int i = first; i < first + count; i++) {
    size_t offset = self->offsets[i];
    if (self->wire) {
      self->on->encode(self->precision, self->values + offset, 1.0f, self->wire + offset,
                       self->offsets[i + 1] - offset);
    }
    self->status = first_error(self->status, ready(self, self->tensors[i]));
  }
  self->status = first_error(self->status, lcomm_progress(self->comm));
}

lcomm_status gradients_wait(gradients *self) {
  return first_error(self->status, lcomm_tensors_wait(self->comm));
}

void gradients_take(const gradients *self, float scale) {
  if (self->wire) {
    self->on->decode(self->precision, self->wire, 1.0f / scale, self->values,
                     self->offsets[self->count]);
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_gradients.h"

#include <string.h>

/* A tensor has a name, a place and a size. The name is what a policy can
 * exempt (exempt=*.bias), the place must stay until lcomm_destroy(). */
int gradients_register(gradients *made, lcomm_comm *comm, const model *net, failure *why) {
  made->comm = comm;
  for (int i = 0; i < net->parameter_count; i++) {
    const model_parameter *at = &net->parameters[i];
    lcomm_status status = lcomm_tensor_add(comm, at->name, net->gradients + at->offset, at->count,
                                           LCOMM_FLOAT32, LCOMM_AVG, &made->tensors[i]);
    if (peers_check(comm, status, at->name, why)) {
      lcomm_abort(comm, why->text);
      return -1;
    }
  }
  return 0;
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

/* libcomm gathers tensors in buckets and starts a bucket when its last tensor
 * is ready; lcomm_progress() moves those that are in flight, so that they
 * travel while backward goes on with the next layer. */
void gradients_ready(void *context, int first, int count) {
  gradients *self = context;
  for (int i = first; i < first + count; i++) {
    self->status = first_error(self->status, lcomm_tensor_ready(self->comm, self->tensors[i]));
  }
  self->status = first_error(self->status, lcomm_progress(self->comm));
}

lcomm_status gradients_wait(gradients *self) {
  return first_error(self->status, lcomm_tensors_wait(self->comm));
}

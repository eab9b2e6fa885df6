/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_GRADIENTS_H
#define TRAINER_TRAIN_GRADIENTS_H

#include <libcomm.h>

#include "trainer/train_model.h"
#include "trainer/train_peers.h"

/* How gradients go to libcomm. Each parameter of the model is a tensor, which
 * is registered once, in the order in which backward makes the gradients:
 *
 *   gradients_register()                     once: a tensor per parameter
 *   gradients_begin()                        each step
 *   model_backward(.., gradients_ready, ..)  the layers from last to first: a tensor
 *                                            leaves while the earlier layers compute
 *   gradients_wait()                         the gradients are averages of all ranks
 *   gradients_take()                         they are in the model, whatever type they travelled in
 *
 * With a precision of 16 bits tensors are of that type. */
typedef struct gradients {
  lcomm_comm *comm;
  const backend *on; /* whose memory the gradients are */
  precision_kind precision;
  float *values;                               /* the model's gradients */
  uint16_t *wire;                              /* them with 16 bits; NULL: they travel themselves */
  int count;                                   /* parameters */
  size_t offsets[MODEL_PARAMETERS_MAX + 1];    /* of these, and the end */
  lcomm_tensor *tensors[MODEL_PARAMETERS_MAX]; /* likewise */
  lcomm_status status;                         /* of this step: the first that is not LCOMM_OK */
} gradients;

/* Returns 0, or -1 with `why`; then the other ranks end, too. Collective. gradients_free() after
 * lcomm_destroy(). */
int gradients_register(gradients *made, lcomm_comm *comm, const model *net, failure *why);
void gradients_free(gradients *self);

/* From now on the loss is multiplied by a scale: for a policy with error feedback. Between two
 * steps, the same on all ranks. */
lcomm_status gradients_scale(gradients *self, float scale);

/* What the policy does to each of the `count` tensors: the codec between nodes, or inside one if
 * that is the only one, as words of a policy; "none": it stays exact. */
typedef char policy_codec[64];
void gradients_codecs(const gradients *self, int count, policy_codec *codecs);

void gradients_begin(gradients *self);

/* A model_ready: `context` is the gradients. */
void gradients_ready(void *context, int first, int count);

/* Returns the status of the whole step. Collective. */
lcomm_status gradients_wait(gradients *self);

/* The model's gradients become the averages, divided by the scale of the loss. */
void gradients_take(const gradients *self, float scale);

/* The first status that is not LCOMM_OK, if any. */
lcomm_status first_error(lcomm_status earlier, lcomm_status later);

#endif

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
 *   gradients_wait()                         the gradients are averages of all ranks */
typedef struct gradients {
  lcomm_comm *comm;
  lcomm_tensor *tensors[MODEL_PARAMETERS_MAX]; /* of the model's parameters, same order */
  lcomm_status status;                         /* of this step: the first that is not LCOMM_OK */
} gradients;

/* Returns 0, or -1 with `why`; then the other ranks end, too. Collective. */
int gradients_register(gradients *made, lcomm_comm *comm, const model *net, failure *why);

/* What the policy does to each of the `count` tensors: the codec between nodes, or inside one if
 * that is the only one, as words of a policy; "none": it stays exact. */
typedef char policy_codec[64];
void gradients_codecs(const gradients *self, int count, policy_codec *codecs);

void gradients_begin(gradients *self);

/* A model_ready: `context` is the gradients. */
void gradients_ready(void *context, int first, int count);

/* Returns the status of the whole step. Collective. */
lcomm_status gradients_wait(gradients *self);

/* The first status that is not LCOMM_OK, if any. */
lcomm_status first_error(lcomm_status earlier, lcomm_status later);

#endif

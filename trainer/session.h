/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_SESSION_H
#define TRAINER_SESSION_H

#include <libcomm.h>

#include "trainer/dataset.h"
#include "trainer/model.h"
#include "trainer/optimizer.h"
#include "trainer/options.h"
#include "trainer/peers.h"

/* Everything one rank needs to train. */
typedef struct session {
  const options *chosen;
  lcomm_comm *comm;
  peers ranks;
  dataset data;
  model net;
  optimizer optimizer;
  lcomm_tensor *tensors[MODEL_PARAMETERS_MAX]; /* of net.parameters, same order */
  uint32_t *order;                             /* of the training images, in this epoch */
  uint8_t *labels;                             /* of the mini-batch */
  uint64_t steps_per_epoch;
  int epoch;     /* that runs; 0 before the first */
  uint64_t step; /* steps that are done since the start of the run */
} session;

/* Load the data, make the model, give all ranks the weights of rank 0 and
 * register the gradients. Collective; a failure of one rank is a failure of
 * all. `why` may already hold a failure of this rank, which is then shared.
 * Returns 0, or -1 with `why`. */
int session_open(lcomm_comm *comm, const options *chosen, session *made, failure *why);

/* The buffers of the gradients go too, so close it after lcomm_destroy(). */
void session_close(session *self);

#endif

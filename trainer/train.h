/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_H
#define TRAINER_TRAIN_H

#include "trainer/train_gradients.h"
#include "trainer/train_model.h"
#include "trainer/train_optimizer.h"
#include "trainer/train_options.h"
#include "trainer/train_peers.h"
#include "trainer/train_task.h"

/* Everything one rank needs to train. train.c owns it, reports read it. */
typedef struct training {
  const options *chosen;
  lcomm_comm *comm;
  peers ranks;
  task task;
  model net;
  optimizer optimizer;
  gradients gradients;
  struct run_log *log; /* of rank 0, if asked for; else NULL */
  uint32_t *order;     /* [task.train_count] of the training samples, in this epoch */
  uint8_t *labels;     /* [batch][task.labels] of the mini-batch */
  uint64_t steps_per_epoch;
  int epoch;        /* that runs; 0 before the first */
  uint64_t step;    /* steps that are done since the start of the run */
  uint64_t skipped; /* of these: their averages held NaN or Inf */
} training;

/* All ranks together. */
static inline int samples_per_step(const training *of) {
  return of->ranks.size * of->chosen->batch;
}

#endif

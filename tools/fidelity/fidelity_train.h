/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_FIDELITY_FIDELITY_TRAIN_H
#define LCOMM_TOOLS_FIDELITY_FIDELITY_TRAIN_H

/* One training of a cell, by the models, data and optimisers of the trainer. Workers have the same
 * weights to the bit, so the process keeps one model and lets it work through the samples of one
 * worker after the other. The samples of a step are the same in all worlds and under all presets.
 */

#include "tools/fidelity/fidelity_case.h"
#include "trainer/train_task.h"

enum { FIDELITY_CURVE_MAX = 40 };

typedef struct fidelity_outcome {
  double accuracy; /* on the test images, or bytes of text, at the end, 0..1 */
  double bytes;    /* between nodes: sent by all of them together */
  double steps;
  double seconds;
  double processor_s;              /* of all threads */
  float curve[FIDELITY_CURVE_MAX]; /* mean loss of the training images, of equal parts of the run */
  size_t curve_count;
} fidelity_outcome;

/* Steps of a run over `images` samples in one epoch. */
static inline uint64_t fidelity_steps_per_epoch(const fidelity_training *training,
                                                uint32_t images) {
  return images / (uint32_t)training->batch;
}

/* Returns 0, or -1 with `why`. A training that diverges is an outcome, too. */
int fidelity_train(const fidelity_cell *cell, const task *data, fidelity_outcome *made,
                   failure *why);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_SAVE_H
#define TRAINER_TRAIN_SAVE_H

#include "trainer/train.h"

/* Checkpoints: folders named by the number of steps that are done, in the folder of --save, which
 * all ranks see.
 *
 *   DIR/step-000000001200/trainer    rank 0: how far the run is, weights, what the optimiser knows
 *   DIR/step-000000001200/libcomm/   each rank: its residuals and momentum (lcomm_state_save)
 *
 * A checkpoint is written as DIR/.saving and gets its name once all of it is on the disk, so one
 * that has a name is whole, whenever the run is killed. The last two are kept. A run that goes on
 * from one, on as many ranks and nodes, ends with the bits of a run that was never stopped: the
 * order of the samples depends on seed and epoch alone. */

/* What a checkpoint holds of each weight, sharded as the optimiser is, and values in all, of a run
 * with so many ranks. */
enum { CHECKPOINT_VECTORS_MAX = 3 };
typedef struct checkpoint_vectors {
  float *values[CHECKPOINT_VECTORS_MAX];
  int count;
} checkpoint_vectors;
checkpoint_vectors checkpoint_vectors_of(training *self);
uint64_t checkpoint_values_of(training *self, uint64_t ranks);

/* May this run save where it is to? Local call. Returns 0, or -1 with `why`. */
int save_check(const training *self, failure *why);

/* Save, unless the last checkpoint is of this very step. Between two steps. Collective. Returns 0,
 * or -1 with `why` on all ranks. */
int save_checkpoint(training *self, failure *why);

/* Go on from the last checkpoint in the folder of --resume; nothing without that option. After the
 * gradients were registered. Collective. Returns 0, or -1 with `why` on all ranks. */
int resume_checkpoint(training *self, failure *why);

#endif

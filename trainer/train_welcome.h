/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_WELCOME_H
#define TRAINER_TRAIN_WELCOME_H

#include "trainer/train.h"

/* Newcomers to a training that is under way. Rank 0 has been there before, and tells them: where
 * the run stands, weights, and what the optimiser remembers. */

/* Collective over the ranks that were there before and the newcomers. Those tell, these are told,
 * and make their model; they are equal afterwards, but for what layers remember, of which newcomers
 * have what rank 0 has. Returns 0, or -1 with `why`. */
int welcome_tell(training *self, failure *why);
int welcome_be_told(training *self, failure *why);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_ELASTIC_H
#define TRAINER_TRAIN_ELASTIC_H

#include "trainer/train.h"

/* Training that goes on when ranks are lost (--elastic). All replicas are equal after each step, so
 * nothing is read from a disk: the ranks that are left make another communicator
 * (lcomm_shrink), finish the step that was broken off or undo it, deal what is left of the epoch's
 * samples among them, and go on. */

/* Launchers of MPI end a job when a rank dies. Returns 0, or -1 with `why`. */
int elastic_check_launcher(failure *why);

/* Meet by the environment, without MPI. Returns 0, or -1 with `why`; the communicator is the
 * caller's in both cases, or NULL. */
int elastic_create(const options *chosen, lcomm_comm **comm, failure *why);

/* After a failure of `why`: if ranks were lost, be where all that are left are, as if they had
 * always been all, and return 0. Else -1, with that failure or another one. Collective. */
int elastic_go_on(training *self, failure *why);

#endif

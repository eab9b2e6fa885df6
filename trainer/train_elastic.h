/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_ELASTIC_H
#define TRAINER_TRAIN_ELASTIC_H

#include "trainer/train.h"

/* Training that goes on when ranks are lost, leave or join (--elastic). All replicas are equal
 * after each step, so nothing is read from a disk. After a loss the ranks that are left make
 * another communicator (lcomm_shrink), and finish the step that was broken off or undo it; ranks
 * that leave and newcomers do so after a step (lcomm_regroup), and newcomers are told where the run
 * stands by rank 0 (train_welcome.h). Then what is left of the epoch's samples is dealt among the
 * ranks that are there, and they go on. */

/* Launchers of MPI end a job when a rank dies. Returns 0, or -1 with `why`. */
int elastic_check_launcher(failure *why);

/* Is this process to join a training that is under way (LCOMM_JOIN)? */
bool elastic_joins(void);

/* Meet by the environment, without MPI, or join. Returns 0, or -1 with `why`; the communicator is
 * the caller's in both cases, or NULL. */
int elastic_create(const options *chosen, lcomm_comm **comm, failure *why);

/* Has this rank joined a training that is under way? Then elastic_join() is its set-up, after
 * training_load(). Where that fails, the process ends as it is: the others lose it and go on. */
bool elastic_is_newcomer(const lcomm_comm *comm);
int elastic_join(training *self, failure *why);

/* Before a step: a rank that was sent SIGTERM asks to leave. After it: -1 where ranks leave, or
 * newcomers fit in, which elastic_go_on() does. Where too few would be left, all stop as after any
 * signal, with `why`. */
void elastic_ask(const training *self);
int elastic_look(training *self, failure *why);

/* After a failure of `why`, or such a -1: if ranks were lost, be where all that are left are, as if
 * they had always been all, and return 0. Else -1, with that failure or another one, or without, if
 * this rank has left. Collective. */
int elastic_go_on(training *self, failure *why);

#endif

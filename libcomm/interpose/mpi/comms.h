/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_COMMS_H
#define LCOMM_INTERPOSE_MPI_COMMS_H

/* What is known of the program's communicators: an attribute of each on which a call was looked
 * at. It comes with the first such call and is local, whoever made the communicator, and in
 * whatever way; so constructors are MPI's own. libcomm's communicator comes with the first call
 * that is chosen (making.h), and goes when all ranks are through (leaving.h). */

#include "libcomm/interpose/mpi/interpose.h"

/* Begin: the communicator of the world, and one of MPI for the making of others. Collective
 * over it. NULL, or why libcomm cannot start. */
const char *lcomm_interpose_comms_open(void);

/* End: what is pending ends, and what all ranks are through with is freed. */
void lcomm_interpose_comms_close(void);

/* What is known of it; NULL: nothing is ever chosen on it, MPI alone serves it. Local. */
lcomm_interpose_comm *lcomm_interpose_find(MPI_Comm comm);

/* libcomm's communicator of all ranks. */
lcomm_comm *lcomm_interpose_world(void);

/* Begin the state of a communicator of `size` ranks, whose numbers in the world are
 * `members` (copied), by LCOMM_POLICY or another policy. Local. `at` may be embedded; it is
 * freed with lcomm_interpose_comm_clear(). ARGUMENT, MEMORY; the sentence is
 * lcomm_last_error(NULL). */
lcomm_status lcomm_interpose_comm_init(lcomm_interpose_comm *at, MPI_Comm comm, const int *members,
                                       int size, int rank, const char *policy);
void lcomm_interpose_comm_clear(lcomm_interpose_comm *at);

/* Another policy is in force from here on, NULL: that of LCOMM_POLICY. Local; nothing is pending.
 * What belonged to the one before, at->home and at->lasting, is the caller's then. On failure
 * nothing has changed. */
lcomm_status lcomm_interpose_comm_judge_by(lcomm_interpose_comm *at, const char *policy);

/* The names of a communicator's ranks, if they agree on one; blocking. */
void lcomm_interpose_agree_on_name(lcomm_interpose_comm *at);

/* One user more, or less: of the program's communicator there is one until it is freed, and one
 * of each call that is not over. Without users the state goes. */
void lcomm_interpose_use(lcomm_interpose_comm *at);
void lcomm_interpose_unuse(lcomm_interpose_comm *at);

/* The program's communicator is about to go: its error handler is kept. */
void lcomm_interpose_comm_orphan(lcomm_interpose_comm *at);

/* Ask the error handler of the communicator, also after it was freed. */
void lcomm_interpose_ask_handler(const lcomm_interpose_comm *at);

#endif

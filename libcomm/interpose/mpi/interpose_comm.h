/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_COMM_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_COMM_H

/* The state of the program's communicators, an attribute of each communicator that had an eligible
 * call. The first such call creates it, without messages, however the communicator was made; so
 * MPI's constructors are not intercepted. The backing communicator follows with the first call
 * that libcomm makes (interpose_context.h), and goes when all ranks have released it
 * (interpose_release.h). */

#include "libcomm/interpose/mpi/interpose.h"

/* --------------------------------------------------- interpose_comm_table.c */

/* Create the world's backing communicator and what other communicators need. Collective over the
 * world. NULL, or why libcomm cannot start. */
const char *lcomm_interpose_comms_open(void);

/* Complete what is pending, free what all ranks have released. */
void lcomm_interpose_comms_close(void);

/* The state of a communicator; NULL: MPI makes all calls on it. Local. */
lcomm_interpose_comm *lcomm_interpose_comm_find(MPI_Comm comm);

/* The world's backing communicator. */
lcomm_comm *lcomm_interpose_world(void);

/* Count a user more, or one less: the program's communicator until it is freed, and each call in
 * flight. The state goes with the last user. */
void lcomm_interpose_comm_retain(lcomm_interpose_comm *at);
void lcomm_interpose_comm_release(lcomm_interpose_comm *at);

/* --------------------------------------------------------- interpose_comm.c */

/* Initialise the state of a communicator of `size` ranks, whose world ranks are `members` (copied),
 * under a policy; NULL: LCOMM_POLICY. Local. On failure, ARGUMENT or MEMORY, the sentence is
 * lcomm_last_error(NULL). */
lcomm_status lcomm_interpose_comm_init(lcomm_interpose_comm *at, MPI_Comm comm, const int *members,
                                       int size, int rank, const char *policy);
void lcomm_interpose_comm_clear(lcomm_interpose_comm *at);

/* Agree on the communicator's name, if all ranks have the same. Blocking and collective. */
void lcomm_interpose_comm_agree_on_name(lcomm_interpose_comm *at);

/* -------------------------------------------------------------- control file */

/* LCOMM_INTERPOSE_CONTROL names a file with one line:
 *   on             obey LCOMM_POLICY (also: no file, or an empty one)
 *   off            MPI makes all calls, after carried residuals are flushed
 *   policy WORDS   obey another policy
 * Rank 0 of a communicator reads it in the first candidate call and in every 16th after it. The
 * ranks agree in that call, so all change at the same one. Until then LCOMM_POLICY holds. */

/* Is a file named? */
bool lcomm_interpose_control_wanted(void);

/* A candidate call begins: read the file where it is due. Collective. */
void lcomm_interpose_control_poll(lcomm_interpose_comm *at);

#endif

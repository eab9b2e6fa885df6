/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_COMM_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_COMM_H

/* The state of the program's communicators, an attribute of each communicator that had an eligible
 * call. The first such call creates it, without messages, however the communicator was made; so
 * MPI's constructors are not intercepted. The backing communicator follows with the first call
 * that libcomm makes (interpose_context.c), and goes when all ranks have released it
 * (interpose_release.c). */

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

/* A candidate call begins: read the file where it is due. Collective. */
void lcomm_interpose_control_poll(lcomm_interpose_comm *at);

/* ------------------------------------------------------ interpose_context.c */

/* Creation of the backing communicator, in the first call that libcomm makes on an MPI
 * communicator: all ranks are in that call or will be, so nothing else of the program is waited
 * for.
 *
 * Rank 0 draws a number and broadcasts it in the place of the call. All other messages are those of
 * a rendezvous with that number (interpose_rendezvous.h). So any number of communicators of the
 * same ranks may be created at a time, in any order and from any thread.
 */

/* Forget the backing communicator, which belongs to the caller then. */
void lcomm_interpose_context_reset(lcomm_interpose_context *context);

/* Free what a context owns besides the backing communicator. */
void lcomm_interpose_context_clear(lcomm_interpose_context *context);

/* In a blocking call of all ranks: create the backing unless there is one. On failure
 * context.sentence says why. Either context.plain_mpi is set on all ranks, or a rank is overdue:
 * then this call fails and all further ones. */
lcomm_status lcomm_interpose_backing_create(lcomm_interpose_comm *at);

/* In a non-blocking call of all ranks: begin to create the backing unless that was begun. Never
 * waits. False: no memory. */
bool lcomm_interpose_backing_begin(lcomm_interpose_comm *at);

/* The queue's thread polls this with at->lock. True: creation has ended with *status. Never
 * waits. */
bool lcomm_interpose_backing_ready(lcomm_interpose_comm *at, lcomm_status *status);

/* The queue's thread has seen a call fail: keep the first such sentence, because another thread
 * delivers the failure. Needs at->lock. */
void lcomm_interpose_context_keep_error(lcomm_interpose_context *context, const char *sentence);

/* The program frees its communicator: wait for the broadcast on it, which all ranks that have made
 * the call have completed. */
void lcomm_interpose_backing_detach(lcomm_interpose_comm *at);

/* ------------------------------------------------------ interpose_release.c */

/* Release of backing communicators that this rank no longer uses. Each rank tells the root, which
 * tells all when the last rank has; then each frees its part. Nobody waits for that: a rank looks
 * when it creates or frees another communicator, and at the end. */

/* Release a backing communicator without calls in flight on this rank: backing->comm, which may be
 * NULL, is NULL afterwards. The world's is released at the end only, because the others are parts
 * of it. Local. */
void lcomm_interpose_backing_release(const lcomm_interpose_comm *at,
                                     lcomm_interpose_backing *backing);

/* Free what all ranks have released by now. Cheap where nothing was. */
void lcomm_interpose_release_ready(void);

/* The end: release the world's communicator, too, which is NULL then. Free what all ranks release
 * within some seconds; what others still use stays until the process ends. */
void lcomm_interpose_release_world(lcomm_comm **world);

#endif

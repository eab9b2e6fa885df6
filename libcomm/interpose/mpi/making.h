/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_MAKING_H
#define LCOMM_INTERPOSE_MPI_MAKING_H

/* libcomm's communicator over the ranks of one of the program's, made in the first call on it
 * that is chosen: there all ranks are, or will be, and nothing else of the program is waited for.
 *
 * Rank 0 draws a number, which the others learn by a broadcast in the place of the call; all
 * else are messages between rank 0 and the others on a communicator of the world that is the
 * library's own, with tags made of that number. So any number of communicators of the same ranks
 * may be in the making at a time, in any order and from any thread.
 */

#include "libcomm/interpose/mpi/interpose.h"

/* Where the ranks meet. Collective over the world, once; false without it. */
bool lcomm_interpose_makings_open(void);
void lcomm_interpose_makings_close(void);

/* The communicator of the messages, MPI_COMM_NULL before and after. */
MPI_Comm lcomm_interpose_meeting_comm(void);

/* Messages of a communicator there: while it is made, and when it is left; from the others to
 * its rank 0, whose number it has, and from there. */
typedef enum lcomm_interpose_way {
  LCOMM_INTERPOSE_TO_FIRST,
  LCOMM_INTERPOSE_FROM_FIRST,
  LCOMM_INTERPOSE_LEFT_TO_FIRST,
  LCOMM_INTERPOSE_LEFT_FROM_FIRST,
  LCOMM_INTERPOSE_WAYS
} lcomm_interpose_way;

int lcomm_interpose_tag(lcomm_interpose_way way, uint64_t number);

/* The highest of MPI, which libcomm's own messages do not use. */
int lcomm_interpose_last_tag(void);

/* In a blocking call of all ranks: make at->home, unless it is there. On failure the sentence is
 * at->sentence: either at->stays_mpi, on all ranks, or a rank does not come, and the call and all
 * that follow fail. */
lcomm_status lcomm_interpose_make_home(lcomm_interpose_comm *at);

/* In the same call of all ranks, which does not block: begin to make it, unless that was
 * begun. Never waits. False without memory. */
bool lcomm_interpose_begin_home(lcomm_interpose_comm *at);

/* Is it there? Called again and again by the queue's thread, with at->lock; never waits.
 * *status: how it ended, on true. */
bool lcomm_interpose_home_is_made(lcomm_interpose_comm *at, lcomm_status *status);

/* The program frees its communicator: what needs that ends first, which all ranks that have
 * made the call have done. */
void lcomm_interpose_home_let_go(lcomm_interpose_comm *at);

#endif

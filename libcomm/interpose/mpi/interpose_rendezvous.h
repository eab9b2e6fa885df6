/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_RENDEZVOUS_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_RENDEZVOUS_H

/* Messages of the library's own, while ranks create or release a backing communicator. They travel
 * on MPI communicators that the program does not know. */

#include "libcomm/interpose/mpi/interpose.h"

/* ------------------------------------------------------------------ messages */

/* Create the communicator of these messages. Collective over the world, once. */
bool lcomm_interpose_rendezvous_open(void);
void lcomm_interpose_rendezvous_close(void);

/* MPI_COMM_NULL before and after. */
MPI_Comm lcomm_interpose_rendezvous_comm(void);

/* Messages between rank 0 of a backing communicator, the root, and its other ranks. */
typedef enum lcomm_interpose_direction {
  LCOMM_INTERPOSE_INIT_TO_ROOT,
  LCOMM_INTERPOSE_INIT_FROM_ROOT,
  LCOMM_INTERPOSE_RELEASE_TO_ROOT,
  LCOMM_INTERPOSE_RELEASE_FROM_ROOT,
  LCOMM_INTERPOSE_DIRECTIONS
} lcomm_interpose_direction;

/* number: of the backing communicator. */
int lcomm_interpose_rendezvous_tag(lcomm_interpose_direction direction, uint64_t number);

/* The highest tag of MPI, which libcomm's messages do not use. */
int lcomm_interpose_rendezvous_last_tag(void);

/* Some ranks of the world, the first of which is the root. */
typedef struct lcomm_interpose_rendezvous {
  const int *members; /* world ranks */
  int size, rank;     /* of this rank among them */
  uint64_t number;    /* unique among the rendezvous with the same root */
  int overdue;        /* world rank that has not come in time; -1: none */
} lcomm_interpose_rendezvous;

/* The allgather of an lcomm_bootstrap; context is an lcomm_interpose_rendezvous *. */
int lcomm_interpose_rendezvous_allgather(void *context, const void *send, void *receive,
                                         size_t size);

/* Wait for requests. Returns -1 when all are complete. After lcomm_interpose_timeout_s() seconds it
 * cancels all and returns the index of one that is not. */
int lcomm_interpose_rendezvous_wait(int count, MPI_Request requests[]);

/* ------------------------------------------------------------------ channels */

/* A channel is an MPI communicator for the messages of one backing communicator at a time, where
 * neither shared memory nor UCX reaches all ranks. MPI_Init creates all of them over the world,
 * because none may be created later. They are numbered from 1, equally on all ranks; 0: none. */
enum { LCOMM_INTERPOSE_CHANNELS = 63 };

/* Create them where libcomm's messages travel over MPI. Collective over the world. */
bool lcomm_interpose_channels_open(void);
void lcomm_interpose_channels_close(void);

/* Take a channel that is free on all ranks of the rendezvous; *channel is 0 where none is needed.
 * Collective, with the same answer on all ranks. False: none is free, or a rank is overdue. */
bool lcomm_interpose_channel_take(lcomm_interpose_rendezvous *point, int *channel);

/* Its communicator; NULL for 0. */
MPI_Comm *lcomm_interpose_channel_comm(int channel);

/* The ranks that it served send nothing any more: drop messages that nobody received, free it. */
void lcomm_interpose_channel_release(int channel);

#endif

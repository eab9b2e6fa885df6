/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_MEETING_H
#define LCOMM_INTERPOSE_MPI_MEETING_H

/* Messages between ranks that make or leave a communicator, on a communicator of MPI that
 * nobody else uses. */

#include "libcomm/interpose/mpi/interpose.h"

/* Of some ranks of the world; messages between the first of them and the others. */
typedef struct lcomm_interpose_meeting_point {
  const int *members;
  int size, rank;  /* of this rank among them */
  uint64_t number; /* unlike that of any other point with the same first member */
  int late;        /* world rank of one that did not come in time; -1: none */
} lcomm_interpose_meeting_point;

/* As in lcomm_bootstrap; the context is an lcomm_interpose_meeting_point *. */
int lcomm_interpose_meeting_gather(void *context, const void *send, void *receive, size_t size);

/* Wait until requests are over, which MPI_REQUEST_NULL ones are. Returns -1, or, when
 * lcomm_interpose_patience_s() have passed, the number of one that is not; all are given up then.
 */
int lcomm_interpose_meeting_wait(int count, MPI_Request requests[]);

/* MPI waits as long as it takes: for a rank that writes a checkpoint, say. */
#define LCOMM_INTERPOSE_PATIENCE_S (7.0 * 24 * 3600)

/* How long a rank waits for others: LCOMM_TIMEOUT_S, else as MPI does. */
double lcomm_interpose_patience_s(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_COLLECTIVES_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_COLLECTIVES_H

/* What MPI's collective functions share, with counts of int and of MPI_Count. */

#include "libcomm/interpose/mpi/interpose.h"

/* False: MPI refuses these buffers, so MPI makes the call. */
static inline bool lcomm_interpose_buffers_differ(const void *send, const void *receive) {
  return receive != MPI_IN_PLACE && send != receive;
}

/* Set the buffers of a call that was taken, which may be MPI_IN_PLACE, and make it: blocking, or by
 * the queue. Returns an MPI error code. */
int lcomm_interpose_run(lcomm_interpose_call *call, const void *send, void *receive);
int lcomm_interpose_submit(lcomm_interpose_call *call, const void *send, void *receive,
                           MPI_Request *request);

/* The same for a blocking allgather. before: elements of the result before this rank's part, which
 * is in `receive` where `send` is MPI_IN_PLACE. */
int lcomm_interpose_run_gather(lcomm_interpose_call *call, const void *send, void *receive,
                               uint64_t before);

/* The number of ranks of an intra-communicator; 0: it is none. */
int lcomm_interpose_intra_size(MPI_Comm comm);

#endif

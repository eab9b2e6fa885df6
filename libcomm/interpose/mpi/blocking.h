/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_BLOCKING_H
#define LCOMM_INTERPOSE_MPI_BLOCKING_H

#include "libcomm/interpose/mpi/interpose.h"

/* Buffers that MPI would take. What it refuses, it shall refuse itself. */
static inline bool lcomm_interpose_buffers_differ(const void *send, const void *receive) {
  return receive != MPI_IN_PLACE && send != receive;
}

/* The parts of a reduce-scatter on an intra-communicator, whose array MPI requires to be equal on
 * all ranks: their mean, rounded up, and whether all are of one length. False where MPI shall say
 * what is wrong, and where there is nothing to do. */
bool lcomm_interpose_parts(const int counts[], MPI_Comm comm, uint64_t *mean, bool *even);

#endif

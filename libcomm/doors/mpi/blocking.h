/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DOORS_MPI_BLOCKING_H
#define LCOMM_DOORS_MPI_BLOCKING_H

#include "libcomm/doors/mpi/door.h"

/* Buffers that MPI would take. What it refuses, it shall refuse itself. */
static inline bool lcomm_door_buffers_differ(const void *send, const void *receive) {
  return receive != MPI_IN_PLACE && send != receive;
}

/* Are the counts of all ranks of an intra-communicator the same, and above 0? MPI requires the
 * array to be equal on all ranks. */
bool lcomm_door_even(const int counts[], MPI_Comm comm);

#endif

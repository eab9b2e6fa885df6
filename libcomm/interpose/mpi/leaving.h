/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_LEAVING_H
#define LCOMM_INTERPOSE_MPI_LEAVING_H

/* Communicators of libcomm that this rank is through with. Each rank tells rank 0 of the
 * communicator, which tells all when the last one has; then each frees what it has. Nobody waits
 * for that: it is looked at when something else is freed or made, and at the end. */

#include "libcomm/interpose/mpi/interpose.h"

/* Leave it; its operations on this rank are over. Takes home->comm over, which is NULL then;
 * NULL ok. The communicator of all ranks is left at the end only, because others are parts
 * of it. Local. */
void lcomm_interpose_leave(const lcomm_interpose_comm *at, lcomm_interpose_home *home);

/* Free what all ranks have left by now. Costs next to nothing where nothing was left. */
void lcomm_interpose_sweep(void);

/* The end: leave the communicator of all ranks, too, which is NULL then, and free the rest as soon
 * as all ranks have left it, but wait for the others no longer than a moment; what they still use
 * stays to the end of the process. */
void lcomm_interpose_leave_world(lcomm_comm **world);

#endif

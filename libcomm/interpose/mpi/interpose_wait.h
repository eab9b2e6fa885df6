/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_WAIT_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_WAIT_H

/* MPI's waiting functions, for requests that the queue's thread may complete: interpose_openmpi.c
 * or interpose_mpich.c. interpose_wait.c delivers failures behind them. */

#include "libcomm/interpose/mpi/interpose.h"

int lcomm_interpose_wait(MPI_Request *request, MPI_Status *status);
int lcomm_interpose_waitall(int count, MPI_Request requests[], MPI_Status statuses[]);
int lcomm_interpose_waitany(int count, MPI_Request requests[], int *index, MPI_Status *status);
int lcomm_interpose_waitsome(int count, MPI_Request requests[], int *done, int indices[],
                             MPI_Status statuses[]);

/* MPI's freeing of a request, which also knows generalized requests that are not complete. */
int lcomm_interpose_request_free(MPI_Request *request);

/* May the query function of a generalized request return an error? Otherwise the program's waiting
 * and testing functions deliver the failure. */
extern const bool lcomm_interpose_query_may_fail;

/* How many failures these functions must deliver to the program. A call that ends writes it after
 * all else. */
extern atomic_int lcomm_interpose_undelivered;

#endif

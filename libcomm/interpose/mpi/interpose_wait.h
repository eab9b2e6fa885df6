/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_WAIT_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_WAIT_H

/* MPI's waiting functions, for requests that the queue's thread may complete:
 * interpose_wait_by_tests.c. interpose_wait.c delivers failures, and results that were staged,
 * behind them. */

#include "libcomm/interpose/mpi/interpose.h"

int lcomm_interpose_wait(MPI_Request *request, MPI_Status *status);
int lcomm_interpose_waitall(int count, MPI_Request requests[], MPI_Status statuses[]);
int lcomm_interpose_waitany(int count, MPI_Request requests[], int *index, MPI_Status *status);
int lcomm_interpose_waitsome(int count, MPI_Request requests[], int *done, int indices[],
                             MPI_Status statuses[]);

/* In interpose_openmpi.c or interpose_mpich.c. Do they test, instead of calling MPI's own? */
bool lcomm_interpose_waits_by_tests(void);

/* MPI's freeing of a request, which also knows generalized requests that are not complete. */
int lcomm_interpose_request_free(MPI_Request *request);

/* May the query function of a generalized request return an error, and call libcomm? Otherwise the
 * program's waiting and testing functions deliver the failure, or the result of a staged call. */
extern const bool lcomm_interpose_query_may_fail;

/* How many failures and results these functions must deliver to the program. A call that ends
 * writes it after all else. */
extern atomic_int lcomm_interpose_undelivered;

#endif

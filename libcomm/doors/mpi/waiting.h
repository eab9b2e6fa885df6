/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DOORS_MPI_WAITING_H
#define LCOMM_DOORS_MPI_WAITING_H

/* MPI's own waiting, for requests that the queue's thread may complete: waiting.c, or
 * waiting_mpich.c. */

#include "libcomm/doors/mpi/door.h"

int lcomm_door_wait(MPI_Request *request, MPI_Status *status);
int lcomm_door_waitall(int count, MPI_Request requests[], MPI_Status statuses[]);
int lcomm_door_waitany(int count, MPI_Request requests[], int *index, MPI_Status *status);
int lcomm_door_waitsome(int count, MPI_Request requests[], int *done, int indices[],
                        MPI_Status statuses[]);

#endif

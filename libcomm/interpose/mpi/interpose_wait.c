/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "libcomm/interpose/mpi/interpose_wait.h"

const bool lcomm_interpose_query_may_fail = true;

int lcomm_interpose_wait(MPI_Request *request, MPI_Status *status) {
  return PMPI_Wait(request, status);
}

int lcomm_interpose_waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  return PMPI_Waitall(count, requests, statuses);
}

int lcomm_interpose_waitany(int count, MPI_Request requests[], int *index, MPI_Status *status) {
  return PMPI_Waitany(count, requests, index, status);
}

int lcomm_interpose_waitsome(int count, MPI_Request requests[], int *done, int indices[],
                             MPI_Status statuses[]) {
  return PMPI_Waitsome(count, requests, done, indices, statuses);
}

int lcomm_interpose_request_free(MPI_Request *request) {
  return PMPI_Request_free(request);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* MPICH (seen in 4.0.2) does not wake a thread in MPI_Wait when another thread completes its
 * request, by a message to itself or as a generalized request, until some other message
 * comes. A test looks at the request itself. So while calls may be taken, waiting is testing
 * again and again, which is what MPICH's own waiting does, too. */

#include <sched.h>

#include "libcomm/interpose/mpi/waiting.h"

int lcomm_interpose_wait(MPI_Request *request, MPI_Status *status) {
  if (lcomm_interpose_is_shut()) {
    return PMPI_Wait(request, status);
  }
  int over = 0, code = PMPI_Test(request, &over, status);
  while (code == MPI_SUCCESS && !over) {
    sched_yield();
    code = PMPI_Test(request, &over, status);
  }
  return code;
}

int lcomm_interpose_waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  if (lcomm_interpose_is_shut()) {
    return PMPI_Waitall(count, requests, statuses);
  }
  int over = 0, code = PMPI_Testall(count, requests, &over, statuses);
  while (code == MPI_SUCCESS && !over) {
    sched_yield();
    code = PMPI_Testall(count, requests, &over, statuses);
  }
  return code;
}

int lcomm_interpose_waitany(int count, MPI_Request requests[], int *index, MPI_Status *status) {
  if (lcomm_interpose_is_shut()) {
    return PMPI_Waitany(count, requests, index, status);
  }
  int over = 0, code = PMPI_Testany(count, requests, index, &over, status);
  while (code == MPI_SUCCESS && !over) {
    sched_yield();
    code = PMPI_Testany(count, requests, index, &over, status);
  }
  return code;
}

int lcomm_interpose_waitsome(int count, MPI_Request requests[], int *done, int indices[],
                             MPI_Status statuses[]) {
  if (lcomm_interpose_is_shut()) {
    return PMPI_Waitsome(count, requests, done, indices, statuses);
  }
  int code = PMPI_Testsome(count, requests, done, indices, statuses);
  while (code == MPI_SUCCESS && *done == 0) { /* MPI_UNDEFINED: none is active */
    sched_yield();
    code = PMPI_Testsome(count, requests, done, indices, statuses);
  }
  return code;
}

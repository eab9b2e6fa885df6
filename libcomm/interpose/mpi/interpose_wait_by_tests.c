/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* MPI's waiting functions, made of its testing functions where the program's thread has something
 * to do between two tests, or where MPI's own would not see that a request is complete. */

#include <sched.h>

#include "libcomm/interpose/mpi/interpose_left.h"
#include "libcomm/interpose/mpi/interpose_wait.h"

static void yield(void) {
  lcomm_interpose_left_do();
  sched_yield();
}

int lcomm_interpose_wait(MPI_Request *request, MPI_Status *status) {
  if (!lcomm_interpose_waits_by_tests()) {
    return PMPI_Wait(request, status);
  }
  int done = 0, code = PMPI_Test(request, &done, status);
  while (code == MPI_SUCCESS && !done) {
    yield();
    code = PMPI_Test(request, &done, status);
  }
  return code;
}

/* The status of one of several: that of a failure says so, and then the others say that they are
 * none. */
static void tell(MPI_Status statuses[], int which, int code, bool *failed) {
  if (statuses == MPI_STATUSES_IGNORE || (code == MPI_SUCCESS && !*failed)) {
    return;
  }
  for (int i = 0; !*failed && i < which; i++) {
    statuses[i].MPI_ERROR = MPI_SUCCESS;
  }
  statuses[which].MPI_ERROR = code;
}

/* One after the other: MPI_Testall of MPICH (4.0.2) aborts where a persistent collective call is
 * over. */
int lcomm_interpose_waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  if (!lcomm_interpose_waits_by_tests() || count < 1 || !requests) {
    return PMPI_Waitall(count, requests, statuses);
  }
  bool failed = false;
  for (int i = 0; i < count; i++) {
    MPI_Status *status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
    int code = lcomm_interpose_wait(&requests[i], status);
    tell(statuses, i, code, &failed);
    failed |= code != MPI_SUCCESS;
  }
  return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

int lcomm_interpose_waitany(int count, MPI_Request requests[], int *index, MPI_Status *status) {
  if (!lcomm_interpose_waits_by_tests()) {
    return PMPI_Waitany(count, requests, index, status);
  }
  int done = 0, code = PMPI_Testany(count, requests, index, &done, status);
  while (code == MPI_SUCCESS && !done) {
    yield();
    code = PMPI_Testany(count, requests, index, &done, status);
  }
  return code;
}

int lcomm_interpose_waitsome(int count, MPI_Request requests[], int *done, int indices[],
                             MPI_Status statuses[]) {
  if (!lcomm_interpose_waits_by_tests()) {
    return PMPI_Waitsome(count, requests, done, indices, statuses);
  }
  int code = PMPI_Testsome(count, requests, done, indices, statuses);
  while (code == MPI_SUCCESS && *done == 0) { /* MPI_UNDEFINED: none is active */
    yield();
    code = PMPI_Testsome(count, requests, done, indices, statuses);
  }
  return code;
}

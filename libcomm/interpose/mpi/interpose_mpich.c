/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What MPICH alone needs. MPICH (4.0.2) does not wake a thread in MPI_Wait when another thread
 * completes its request, by a message to itself or as a generalized request, until some other
 * message comes. MPI_Test looks at the request itself. So this file waits by testing, as MPICH's
 * own functions do, too. */

#include <sched.h>

#include "libcomm/interpose/mpi/interpose_queue.h"
#include "libcomm/interpose/mpi/interpose_wait.h"

/* MPICH would call the world's error handler with a lock held, in which MPI cannot be called. */
const bool lcomm_interpose_query_may_fail = false;

int lcomm_interpose_wait(MPI_Request *request, MPI_Status *status) {
  if (lcomm_interpose_is_off()) {
    return PMPI_Wait(request, status);
  }
  int done = 0, code = PMPI_Test(request, &done, status);
  while (code == MPI_SUCCESS && !done) {
    sched_yield();
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
  if (lcomm_interpose_is_off() || count < 1 || !requests) {
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
  if (lcomm_interpose_is_off()) {
    return PMPI_Waitany(count, requests, index, status);
  }
  int done = 0, code = PMPI_Testany(count, requests, index, &done, status);
  while (code == MPI_SUCCESS && !done) {
    sched_yield();
    code = PMPI_Testany(count, requests, index, &done, status);
  }
  return code;
}

int lcomm_interpose_waitsome(int count, MPI_Request requests[], int *done, int indices[],
                             MPI_Status statuses[]) {
  if (lcomm_interpose_is_off()) {
    return PMPI_Waitsome(count, requests, done, indices, statuses);
  }
  int code = PMPI_Testsome(count, requests, done, indices, statuses);
  while (code == MPI_SUCCESS && *done == 0) { /* MPI_UNDEFINED: none is active */
    sched_yield();
    code = PMPI_Testsome(count, requests, done, indices, statuses);
  }
  return code;
}

/* MPICH (4.0.2) forgets a generalized request that is freed before it is complete, and aborts when
 * it is completed. So the end of the call frees it. A call that is done completes its request at
 * about this time; this waits for it. */
int lcomm_interpose_request_free(MPI_Request *request) {
  bool done = false;
  if (!lcomm_interpose_is_off() && request &&
      lcomm_interpose_request_free_when_done(*request, &done)) {
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
  }
  for (int complete = !done; !complete; sched_yield()) {
    PMPI_Request_get_status(*request, &complete, MPI_STATUS_IGNORE);
  }
  return PMPI_Request_free(request);
}

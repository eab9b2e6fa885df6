/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What MPICH alone needs. MPICH (4.0.2) does not wake a thread in MPI_Wait when another thread
 * completes its request, by a message to itself or as a generalized request, until some other
 * message comes. MPI_Test looks at the request itself. So MPICH waits by testing, as its own
 * functions do, too. */

#include <sched.h>

#include "libcomm/interpose/mpi/interpose_queue.h"
#include "libcomm/interpose/mpi/interpose_wait.h"

/* MPICH would call the world's error handler with a lock held, in which MPI cannot be called. */
const bool lcomm_interpose_query_may_fail = false;

bool lcomm_interpose_waits_by_tests(void) {
  return !lcomm_interpose_is_off();
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

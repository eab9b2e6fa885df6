/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The program's waiting and testing functions. MPI's succeed with the request of a failed
 * persistent call, because it is a receive, and with a failed generalized request where a query
 * function may not fail. The failure is delivered in the thread that waits. Without a failure, a
 * result that was staged, and payloads to be read, this costs two atomic reads. */

#include "libcomm/interpose/mpi/interpose_wait.h"
#include "libcomm/interpose/mpi/interpose_left.h"
#include "libcomm/interpose/mpi/interpose_persistent.h"
#include "libcomm/interpose/mpi/interpose_queue.h"

atomic_int lcomm_interpose_undelivered;

/* Also makes visible what the queue's thread has written before. */
static bool none_failed(void) {
  return atomic_load_explicit(&lcomm_interpose_undelivered, memory_order_acquire) == 0;
}

/* code, *request and *status: as MPI's function has left them. */
static int deliver_one(int code, const MPI_Request *request, MPI_Status *status) {
  if (none_failed()) {
    return code;
  }
  int delivered = lcomm_interpose_requests_deliver();
  if (delivered != MPI_SUCCESS && status != MPI_STATUS_IGNORE) {
    (void)lcomm_interpose_request_failed(status);
  }
  if (code != MPI_SUCCESS || delivered != MPI_SUCCESS) {
    return code != MPI_SUCCESS ? code : delivered;
  }
  return lcomm_interpose_slot_deliver(*request);
}

/* indices: of the completed requests; NULL: all. */
static int deliver_several(int code, int count, const int indices[], const MPI_Request requests[],
                           MPI_Status statuses[]) {
  if (none_failed()) {
    return code;
  }
  int released = lcomm_interpose_requests_deliver();
  if (code != MPI_SUCCESS) {
    return code;
  }
  bool failed = released != MPI_SUCCESS;
  for (int i = 0; i < count; i++) {
    int delivered = lcomm_interpose_slot_deliver(requests[indices ? indices[i] : i]);
    failed |= delivered != MPI_SUCCESS;
    if (statuses != MPI_STATUSES_IGNORE) {
      bool is_released = released != MPI_SUCCESS && lcomm_interpose_request_failed(&statuses[i]);
      statuses[i].MPI_ERROR = is_released ? released : delivered;
    }
  }
  return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

LCOMM_INTERPOSE_API int MPI_Wait(MPI_Request *request, MPI_Status *status) {
  return deliver_one(lcomm_interpose_wait(request, status), request, status);
}

LCOMM_INTERPOSE_API int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
  lcomm_interpose_left_do();
  int code = PMPI_Test(request, flag, status);
  return code == MPI_SUCCESS && *flag ? deliver_one(code, request, status) : code;
}

LCOMM_INTERPOSE_API int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  return deliver_several(lcomm_interpose_waitall(count, requests, statuses), count, NULL, requests,
                         statuses);
}

LCOMM_INTERPOSE_API int MPI_Testall(int count, MPI_Request requests[], int *flag,
                                    MPI_Status statuses[]) {
  lcomm_interpose_left_do();
  int code = PMPI_Testall(count, requests, flag, statuses);
  return code == MPI_SUCCESS && *flag ? deliver_several(code, count, NULL, requests, statuses)
                                      : code;
}

LCOMM_INTERPOSE_API int MPI_Waitany(int count, MPI_Request requests[], int *index,
                                    MPI_Status *status) {
  int code = lcomm_interpose_waitany(count, requests, index, status);
  return code == MPI_SUCCESS && *index >= 0 ? deliver_one(code, &requests[*index], status) : code;
}

LCOMM_INTERPOSE_API int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag,
                                    MPI_Status *status) {
  lcomm_interpose_left_do();
  int code = PMPI_Testany(count, requests, index, flag, status);
  return code == MPI_SUCCESS && *flag && *index >= 0 ? deliver_one(code, &requests[*index], status)
                                                     : code;
}

LCOMM_INTERPOSE_API int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[],
                                     MPI_Status statuses[]) {
  int code = lcomm_interpose_waitsome(count, requests, done, indices, statuses);
  return deliver_several(code, code == MPI_SUCCESS ? *done : 0, indices, requests, statuses);
}

LCOMM_INTERPOSE_API int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[],
                                     MPI_Status statuses[]) {
  lcomm_interpose_left_do();
  int code = PMPI_Testsome(count, requests, done, indices, statuses);
  return deliver_several(code, code == MPI_SUCCESS ? *done : 0, indices, requests, statuses);
}

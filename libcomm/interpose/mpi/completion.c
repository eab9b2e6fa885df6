/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Waiting and testing are MPI's own. They are here for one reason: the receive that
 * stands for a persistent sum succeeds also when the sum has failed, and the program must hear
 * of it in the thread that waits. Without such a failure they cost one look at a number. */

#include "libcomm/interpose/mpi/persistent.h"
#include "libcomm/interpose/mpi/waiting.h"

/* Also makes visible what the thread that ended the call has written. */
static bool all_well(void) {
  return atomic_load_explicit(&lcomm_interpose_untold, memory_order_acquire) == 0;
}

int lcomm_interpose_tell(MPI_Request request) {
  lcomm_status status = LCOMM_OK;
  int code = MPI_SUCCESS;
  pthread_mutex_lock(&lcomm_interpose_places_lock);
  lcomm_interpose_place *place = lcomm_interpose_place_of(request);
  if (place) {
    status = place->untold;
    code = place->code;
    place->untold = LCOMM_OK;
  }
  pthread_mutex_unlock(&lcomm_interpose_places_lock);
  if (status == LCOMM_OK) {
    return MPI_SUCCESS;
  }
  atomic_fetch_sub(&lcomm_interpose_untold, 1);
  return code != MPI_SUCCESS ? code : lcomm_interpose_fail(&place->call, status);
}

static int tell_one(int code, const MPI_Request *request) {
  return code == MPI_SUCCESS && !all_well() ? lcomm_interpose_tell(*request) : code;
}

/* indices: of those that are over, NULL: all. */
static int tell_several(int code, int count, const int indices[], const MPI_Request requests[],
                        MPI_Status statuses[]) {
  bool failed = false;
  if (code != MPI_SUCCESS || all_well()) {
    return code;
  }
  for (int i = 0; i < count; i++) {
    int told = lcomm_interpose_tell(requests[indices ? indices[i] : i]);
    failed |= told != MPI_SUCCESS;
    if (statuses != MPI_STATUSES_IGNORE) {
      statuses[i].MPI_ERROR = told;
    }
  }
  return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

LCOMM_INTERPOSE_API int MPI_Wait(MPI_Request *request, MPI_Status *status) {
  return tell_one(lcomm_interpose_wait(request, status), request);
}

LCOMM_INTERPOSE_API int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
  int code = PMPI_Test(request, flag, status);
  return code == MPI_SUCCESS && *flag ? tell_one(code, request) : code;
}

LCOMM_INTERPOSE_API int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  return tell_several(lcomm_interpose_waitall(count, requests, statuses), count, NULL, requests,
                      statuses);
}

LCOMM_INTERPOSE_API int MPI_Testall(int count, MPI_Request requests[], int *flag,
                                    MPI_Status statuses[]) {
  int code = PMPI_Testall(count, requests, flag, statuses);
  return code == MPI_SUCCESS && *flag ? tell_several(code, count, NULL, requests, statuses) : code;
}

LCOMM_INTERPOSE_API int MPI_Waitany(int count, MPI_Request requests[], int *index,
                                    MPI_Status *status) {
  int code = lcomm_interpose_waitany(count, requests, index, status);
  return code == MPI_SUCCESS && *index >= 0 ? tell_one(code, &requests[*index]) : code;
}

LCOMM_INTERPOSE_API int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag,
                                    MPI_Status *status) {
  int code = PMPI_Testany(count, requests, index, flag, status);
  return code == MPI_SUCCESS && *flag && *index >= 0 ? tell_one(code, &requests[*index]) : code;
}

LCOMM_INTERPOSE_API int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[],
                                     MPI_Status statuses[]) {
  int code = lcomm_interpose_waitsome(count, requests, done, indices, statuses);
  return tell_several(code, code == MPI_SUCCESS ? *done : 0, indices, requests, statuses);
}

LCOMM_INTERPOSE_API int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[],
                                     MPI_Status statuses[]) {
  int code = PMPI_Testsome(count, requests, done, indices, statuses);
  return tell_several(code, code == MPI_SUCCESS ? *done : 0, indices, requests, statuses);
}

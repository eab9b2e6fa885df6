/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/verdict.h"

#include <stdlib.h>
#include <string.h>

lcomm_verdict lcomm_verdict_of(const void *statuses, size_t stride, int size) {
  lcomm_verdict verdict = {.status = LCOMM_OK, .rank = -1, .known = true};
  for (int rank = 0; rank < size; rank++) {
    int32_t given;
    memcpy(&given, (const char *)statuses + (size_t)rank * stride, sizeof given);
    if (given != LCOMM_OK) {
      verdict.rank = rank;
      verdict.status = lcomm_status_received(given, verdict.text);
      verdict.known = (int32_t)verdict.status == given;
      break;
    }
  }
  return verdict;
}

lcomm_status lcomm_verdict_gather(const lcomm_bootstrap *bootstrap, lcomm_status mine,
                                  lcomm_verdict *verdict) {
  int32_t own = (int32_t)mine;
  int32_t *all = calloc((size_t)bootstrap->world_size, sizeof *all);
  if (!all) {
    return LCOMM_ERR_MEMORY;
  }
  lcomm_status status = LCOMM_ERR_TRANSPORT;
  if (bootstrap->allgather(bootstrap->context, &own, all, sizeof own) == 0) {
    *verdict = lcomm_verdict_of(all, sizeof *all, bootstrap->world_size);
    status = LCOMM_OK;
  }
  free(all);
  return status;
}

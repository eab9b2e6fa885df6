/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/tensor/saved_state.h"

#include <stdlib.h>

#include "libcomm/tensor/bucket.h"
#include "libcomm/tensor/residual.h"

static lcomm_ef_item item_of_tensor(lcomm_tensor *tensor) {
  return (lcomm_ef_item){.name = tensor->name,
                         .ef = tensor->bucket ? &tensor->bucket->ef : NULL,
                         .parked = &tensor->state,
                         .offset = tensor->offset,
                         .count = tensor->count,
                         .dtype = tensor->dtype,
                         .op = tensor->op};
}

static lcomm_ef_item item_of_calls(lcomm_residual *residual) {
  const lcomm_plan_request *request = &residual->ef.request;
  return (lcomm_ef_item){.name = residual->name,
                         .ef = &residual->ef,
                         .count = request->count,
                         .dtype = request->dtype,
                         .op = request->op,
                         .calls = &residual->calls};
}

lcomm_status lcomm_saved_state_list(lcomm_comm *comm, lcomm_ef_list *list) {
  size_t most = comm->tensors->count;
  for (const lcomm_residual *it = comm->residuals->first; it; it = it->next) {
    most++;
  }
  *list = (lcomm_ef_list){.comm = comm, .items = calloc(most + 1, sizeof *list->items)};
  if (!list->items) {
    return LCOMM_ERR_MEMORY;
  }
  for (; list->tensors < comm->tensors->count; list->tensors++) {
    list->items[list->tensors] = item_of_tensor(comm->tensors->list[list->tensors]);
  }
  list->count = list->tensors;
  for (lcomm_residual *it = comm->residuals->first; it; it = it->next) {
    if (it->name[0]) {
      list->items[list->count++] = item_of_calls(it);
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_saved_state_check_calls(const lcomm_comm *comm, const char *call) {
  lcomm_status status = LCOMM_OK;
  for (const lcomm_residual *it = comm->residuals->first; it && status == LCOMM_OK; it = it->next) {
    status = it->name[0] ? lcomm_residual_check_idle(it, call) : LCOMM_OK;
  }
  return status;
}

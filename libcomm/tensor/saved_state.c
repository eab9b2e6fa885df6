/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/tensor/saved_state.h"

#include <stdlib.h>
#include <xxhash.h>

#include "libcomm/tensor/bucket.h"
#include "libcomm/tensor/residual.h"

/* What differs from a tensor that has always had its codec. */
static lcomm_state_guard guard_of(const lcomm_guarded *guarded) {
  if (guarded->rungs == 0 && !guarded->came_back && guarded->patience <= LCOMM_GUARD_PATIENCE) {
    return (lcomm_state_guard){.rungs = 0};
  }
  return (lcomm_state_guard){guarded->rungs, guarded->came_back, guarded->good, guarded->patience};
}

static lcomm_ef_item item_of_tensor(lcomm_tensor *tensor) {
  return (lcomm_ef_item){.name = tensor->name,
                         .ef = tensor->bucket ? &tensor->bucket->ef : NULL,
                         .parked = &tensor->state,
                         .offset = tensor->offset,
                         .count = tensor->count,
                         .dtype = tensor->dtype,
                         .op = tensor->op,
                         .guard = guard_of(&tensor->guarded)};
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

uint64_t lcomm_saved_guards_hash(const lcomm_restore *restore) {
  uint64_t hash = 0;
  for (size_t i = 0; i < restore->list->tensors; i++) {
    const lcomm_state_guard *it = &restore->guards[i];
    uint64_t words[] = {it->rungs, it->came_back, it->good, it->patience};
    hash = XXH3_64bits_withSeed(words, sizeof(words), hash);
  }
  return hash;
}

bool lcomm_saved_guards_commit(lcomm_comm *comm, const lcomm_restore *restore) {
  bool changed = false;
  for (size_t i = 0; i < restore->list->tensors; i++) {
    const lcomm_state_guard *it = &restore->guards[i];
    lcomm_guarded *guarded = &comm->tensors->list[i]->guarded;
    changed |= guarded->rungs != it->rungs;
    guarded->rungs = it->rungs;
    guarded->came_back = it->came_back;
    guarded->good = it->good;
    guarded->patience = it->patience;
  }
  return changed;
}

lcomm_status lcomm_saved_state_check_calls(const lcomm_comm *comm, const char *call) {
  lcomm_status status = LCOMM_OK;
  for (const lcomm_residual *it = comm->residuals->first; it && status == LCOMM_OK; it = it->next) {
    status = it->name[0] ? lcomm_residual_check_idle(it, call) : LCOMM_OK;
  }
  return status;
}

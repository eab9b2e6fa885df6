/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/tensor/saved_state.h"

#include <stdlib.h>
#include <xxhash.h>

#include "libcomm/tensor/bucket.h"
#include "libcomm/tensor/residual_guard.h"

/* What differs from data that has always had its codec. */
static lcomm_state_guard guard_of(const lcomm_guarded *guarded) {
  if (guarded->rungs == 0 && !guarded->came_back && guarded->patience <= LCOMM_GUARD_PATIENCE) {
    return (lcomm_state_guard){.rungs = 0};
  }
  return (lcomm_state_guard){.rungs = guarded->rungs,
                             .came_back = guarded->came_back,
                             .good = guarded->good,
                             .patience = guarded->patience};
}

static lcomm_state_guard guard_of_calls(const lcomm_residual *residual) {
  lcomm_state_guard guard = guard_of(&residual->guarded);
  guard.pays = residual->ef.flushes || (residual->guard && residual->guard->all.changed);
  return guard;
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

static lcomm_ef_item item_of_calls(lcomm_residual *residual, const char *name) {
  const lcomm_plan_request *request = &residual->ef.request;
  return (lcomm_ef_item){.name = name,
                         .ef = &residual->ef,
                         .count = request->count,
                         .dtype = request->dtype,
                         .op = request->op,
                         .calls = &residual->calls,
                         .guard = guard_of_calls(residual)};
}

/* The tensors, with room for all residuals. */
static lcomm_status begin_list(lcomm_comm *comm, lcomm_ef_list *list) {
  size_t most = comm->tensors->count;
  for (const lcomm_residual *it = comm->residuals->first; it; it = it->next) {
    most++;
  }
  *list = (lcomm_ef_list){.comm = comm,
                          .rank = comm->rank,
                          .ranks = comm->size,
                          .node = comm->topo.node[comm->rank],
                          .nodes = comm->topo.nodes,
                          .items = calloc(most + 1, sizeof *list->items)};
  if (!list->items) {
    return LCOMM_ERR_MEMORY;
  }
  for (; list->tensors < comm->tensors->count; list->tensors++) {
    list->items[list->tensors] = item_of_tensor(comm->tensors->list[list->tensors]);
  }
  list->count = list->tensors;
  return LCOMM_OK;
}

lcomm_status lcomm_saved_state_list(lcomm_comm *comm, lcomm_ef_list *list) {
  LCOMM_TRY(begin_list(comm, list));
  for (lcomm_residual *it = comm->residuals->first; it; it = it->next) {
    if (it->name[0]) {
      list->items[list->count++] = item_of_calls(it, it->name);
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_saved_state_list_carried(lcomm_comm *comm, lcomm_ef_list *list) {
  LCOMM_TRY(begin_list(comm, list));
  list->leaves_out_calls = true;
  for (lcomm_residual *it = comm->residuals->first; it; it = it->next) {
    if (!it->apart) {
      list->items[list->count++] = item_of_calls(it, it->key);
    }
  }
  return LCOMM_OK;
}

uint64_t lcomm_saved_guards_hash(const lcomm_restore *restore) {
  uint64_t hash = 0;
  for (size_t i = 0; i < restore->list->count; i++) {
    const lcomm_state_guard *it = &restore->guards[i];
    uint64_t words[] = {it->rungs, it->came_back, it->pays, it->good, it->patience};
    hash = XXH3_64bits_withSeed(words, sizeof(words), hash);
  }
  return hash;
}

void lcomm_saved_guards_soften(lcomm_restore *restore) {
  const lcomm_ef_list *list = restore->list;
  for (size_t i = list->tensors; i < list->count; i++) {
    const lcomm_state_guard *it = &restore->guards[i];
    lcomm_codec_spec *milder = &restore->restored[restore->of[i]].milder;
    *milder = (lcomm_codec_spec){.format = {.codec = NULL}};
    if (it->rungs > 0 && !it->pays) {
      *milder = lcomm_guard_codec(list->items[i].ef, it->rungs);
    }
  }
}

static void put_guard(const lcomm_state_guard *it, lcomm_guarded *guarded) {
  guarded->rungs = it->rungs;
  guarded->came_back = it->came_back;
  guarded->good = it->good;
  guarded->patience = it->patience;
}

/* Samples that wait are of calls that never were. */
static void put_calls(const lcomm_state_guard *it, lcomm_residual *residual) {
  lcomm_residual_guard_free(residual);
  put_guard(it, &residual->guarded);
  lcomm_residual_guard_soften(residual);
  residual->ef.flushes = it->pays;
}

bool lcomm_saved_guards_commit(lcomm_comm *comm, const lcomm_restore *restore) {
  const lcomm_ef_list *list = restore->list;
  bool changed = false;
  for (size_t i = 0; i < list->tensors; i++) {
    lcomm_guarded *guarded = &comm->tensors->list[i]->guarded;
    changed |= guarded->rungs != restore->guards[i].rungs;
    put_guard(&restore->guards[i], guarded);
  }
  size_t i = list->tensors;
  for (lcomm_residual *it = comm->residuals->first; it && i < list->count; it = it->next) {
    if (list->items[i].calls == &it->calls) {
      put_calls(&restore->guards[i++], it);
    }
  }
  return changed;
}

lcomm_status lcomm_saved_state_check_calls(const lcomm_comm *comm, const char *call) {
  lcomm_status status = LCOMM_OK;
  for (const lcomm_residual *it = comm->residuals->first; it && status == LCOMM_OK; it = it->next) {
    status = lcomm_residual_join(it);
    if (status == LCOMM_OK && it->name[0]) {
      status = lcomm_residual_check_idle(it, call);
    }
  }
  return status;
}

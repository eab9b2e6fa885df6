/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Loading a saved state. All ranks come to the same verdict twice: after each
 * has read its own file, which is all there is to do when nothing has moved,
 * and, when something has, after each has read the files of all. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/status.h"
#include "libcomm/base/text.h"
#include "libcomm/call/call.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/progress_thread.h"
#include "libcomm/tensor/bucket.h"
#include "libcomm/tensor/saved_state_read.h"

typedef lcomm_state_verdict verdict;
typedef lcomm_state_loading loading;

/* -------------------------------------------------------------- agreeing */

/* The error of the first rank that failed, on every rank. */
static lcomm_status report(loading *it, int failed) {
  lcomm_comm *comm = it->comm;
  lcomm_why *why = &it->restore.why;
  char who[96], text[LCOMM_STATUS_TEXT_MAX];
  lcomm_status verdict_status = lcomm_status_received(it->all[failed].status, text);
  LCOMM_TRY(lcomm_call_broadcast_bytes(comm, why->text, sizeof why->text, failed));
  lcomm_text_sanitize(why->text, sizeof why->text);
  if (failed == comm->rank) {
    return lcomm_refuse(comm, verdict_status, "%s: %s", it->call, why->text);
  }
  bool known = (int32_t)verdict_status == it->all[failed].status;
  return lcomm_refuse(comm, verdict_status, "%s: %s reports: %s", it->call,
                      lcomm_comm_who(comm, failed, who, sizeof(who)), known ? why->text : text);
}

static lcomm_status agree(loading *it, lcomm_status mine) {
  it->mine.status = (int32_t)mine;
  lcomm_status status = lcomm_call_allgather_bytes(it->comm, &it->mine, it->all, sizeof(it->mine));
  for (int rank = 0; status == LCOMM_OK && rank < it->comm->size; rank++) {
    if (it->all[rank].status != LCOMM_OK) {
      return report(it, rank);
    }
  }
  return status;
}

/* All ranks decide by the same numbers, so no further exchange is needed. */
static lcomm_status check_same_save(loading *it) {
  const verdict *first = &it->all[0];
  for (int rank = 1; rank < it->comm->size; rank++) {
    if (it->all[rank].residuals != first->residuals) {
      return lcomm_refuse(it->comm, LCOMM_ERR_MISMATCH,
                          "%s: rank 0 and rank %d have made other residuals; all ranks make the "
                          "same ones, with the same names and counts, in the same order",
                          it->call, rank);
    }
  }
  for (int rank = 1; rank < it->comm->size; rank++) {
    const verdict *other = &it->all[rank];
    if (other->ranks != first->ranks || other->step != first->step ||
        other->nodes != first->nodes || other->sequence != first->sequence ||
        other->digest != first->digest) {
      return lcomm_refuse(it->comm, LCOMM_ERR_MISMATCH,
                          "%s: rank 0 reads step %llu saved by %u ranks%s%.400s, rank %d reads "
                          "step %llu saved by %u ranks; what is read must be of one save and the "
                          "same for all ranks",
                          it->call, (unsigned long long)first->step, first->ranks,
                          it->source.folder ? " in " : "",
                          it->source.folder ? it->source.folder : "", rank,
                          (unsigned long long)other->step, other->ranks);
    }
  }
  return LCOMM_OK;
}

static bool fits_everywhere(const loading *it) {
  for (int rank = 0; rank < it->comm->size; rank++) {
    if (!it->all[rank].fits) {
      return false;
    }
  }
  return true;
}

/* Files that each rank has read by itself say the same of all tensors and calls. */
static lcomm_status check_same_guards(const loading *it) {
  for (int rank = 1; rank < it->comm->size; rank++) {
    if (it->all[rank].guards != it->all[0].guards) {
      return lcomm_refuse(it->comm, LCOMM_ERR_MISMATCH,
                          "%s: what rank 0 and rank %d read names other codecs that the guard has "
                          "given to tensors or calls; what is read must be of one save",
                          it->call, rank);
    }
  }
  return LCOMM_OK;
}

/* --------------------------------------------------------------- loading */

/* What all ranks saved, shared out anew. */
static lcomm_status place_all(loading *it) {
  lcomm_restore_free(&it->restore);
  lcomm_status status = lcomm_restore_begin(&it->list, &it->restore);
  if (status != LCOMM_OK) {
    return lcomm_fail(it->comm, status, "%s: out of memory", it->call);
  }
  it->restore.ranks_before = it->ranks_before;
  LCOMM_TRY(agree(it, lcomm_state_read_guards(it)));
  LCOMM_TRY(check_same_guards(it));
  status = lcomm_restore_share(&it->restore, lcomm_call_allgather_bytes);
  if (status != LCOMM_OK) {
    return lcomm_fail(it->comm, status, "%s: out of memory", it->call);
  }
  LCOMM_TRY(agree(it, lcomm_state_read_all(it)));
  return check_same_save(it);
}

/* Each rank's file where it was, or all of them anew. */
static lcomm_status place(loading *it) {
  if (it->source.bring) {
    it->mine.ranks = (uint32_t)it->source.blocks;
    return place_all(it);
  }
  LCOMM_TRY(agree(it, lcomm_state_read_own(it)));
  LCOMM_TRY(check_same_save(it));
  return fits_everywhere(it) ? check_same_guards(it) : place_all(it);
}

static lcomm_status list(loading *it) {
  return it->source.bring ? lcomm_saved_state_list_carried(it->comm, &it->list)
                          : lcomm_saved_state_list(it->comm, &it->list);
}

static lcomm_status load(loading *it) {
  lcomm_comm *comm = it->comm;
  it->all = calloc((size_t)comm->size, sizeof *it->all);
  lcomm_status status = it->all ? list(it) : LCOMM_ERR_MEMORY;
  if (status == LCOMM_OK) {
    status = lcomm_restore_begin(&it->list, &it->restore);
  }
  if (status != LCOMM_OK) {
    return lcomm_fail(comm, status, "%s: out of memory", it->call);
  }
  it->mine.residuals = lcomm_restore_hash(&it->list);
  status = place(it);
  if (status == LCOMM_OK) {
    lcomm_restore_commit(&it->restore);
    it->regroups = lcomm_saved_guards_commit(comm, &it->restore);
    comm->deferred.step = it->mine.step;
    comm->tensors->past.exists = false;
    comm->operations.seed_shift =
        it->mine.sequence - comm->operations.next[LCOMM_SEQUENCE_SPACE_BUCKETS];
  }
  return status;
}

/* Buckets decide what a rank keeps; they are made by the next step otherwise. */
static lcomm_status prepare(lcomm_comm *comm) {
  lcomm_status status = lcomm_tensors_plan(comm);
  for (size_t i = 0; status == LCOMM_OK && i < comm->tensors->count; i++) {
    if (comm->tensors->list[i]->frozen) { /* the same on all ranks */
      status = lcomm_refuse(comm, LCOMM_ERR_STATE,
                            "lcomm_state_load: tensor %s is frozen; unfreeze all tensors, load, "
                            "then freeze them again",
                            comm->tensors->list[i]->name);
    }
  }
  return status;
}

static lcomm_status load_and_regroup(loading *it) {
  lcomm_status status = load(it);
  lcomm_restore_free(&it->restore);
  free(it->list.items);
  free(it->all);
  LCOMM_TRY(status);
  return it->regroups ? lcomm_buckets_plan(it->comm) : LCOMM_OK;
}

static lcomm_status load_from(loading *it) {
  lcomm_comm *comm = it->comm;
  lcomm_status status = lcomm_control_receive(comm);
  if (status != LCOMM_OK) {
    return status;
  }
  if (it->source.folder && !it->source.folder[0]) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: no folder was given", it->call);
  }
  if (atomic_load(&comm->deferred.open)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE, "%s: a step is in flight; call it between the steps",
                        it->call);
  }
  LCOMM_TRY(lcomm_saved_state_check_calls(comm, it->call));
  LCOMM_TRY(prepare(comm));
  return load_and_regroup(it);
}

static lcomm_status enter_and_load(loading *it) {
  lcomm_status status = lcomm_enter_given(it->comm, it->call);
  if (status != LCOMM_OK) {
    return status;
  }
  it->comm->operations.inside = LCOMM_OP_KIND_LOAD;
  status = load_from(it);
  it->comm->operations.inside = LCOMM_OP_KIND_CALL;
  lcomm_exit(it->comm);
  return status;
}

lcomm_status lcomm_saved_state_resume(lcomm_comm *comm, const char *call,
                                      const lcomm_state_source *source, int ranks_before) {
  loading it = {.comm = comm, .call = call, .source = *source, .ranks_before = ranks_before};
  lcomm_op_kind inside = comm->operations.inside;
  comm->operations.inside = LCOMM_OP_KIND_LOAD;
  lcomm_status status = load_and_regroup(&it);
  comm->operations.inside = inside;
  return status;
}

lcomm_status lcomm_saved_state_bring(lcomm_comm *comm, const char *call,
                                     const lcomm_state_source *source, int ranks_before) {
  loading it = {.comm = comm, .call = call, .source = *source, .ranks_before = ranks_before};
  return enter_and_load(&it);
}

lcomm_status lcomm_state_load(lcomm_comm *comm, const char *folder) {
  loading it = {
      .comm = comm, .call = "lcomm_state_load", .source = {.folder = folder ? folder : ""}};
  return enter_and_load(&it);
}

lcomm_status lcomm_state_read(lcomm_comm *comm, const void *bytes, size_t size) {
  loading it = {.comm = comm, .call = "lcomm_state_read", .source = {.bytes = bytes, .size = size}};
  return enter_and_load(&it);
}

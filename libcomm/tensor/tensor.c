/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The tensor calls of a step: ready, then wait; and what was left out of the results so far. */

#include <string.h>

#include "libcomm/call/call_changes.h"
#include "libcomm/device/memory_location.h"
#include "libcomm/engine/entry.h"
#include "libcomm/tensor/tensor_mirror.h"

/* Where steps do not wait for their results, a program that does not ask for them would lose some.
 */
static lcomm_status check_results_taken(lcomm_comm *comm, const lcomm_tensor *tensor) {
  if (comm->settings.policy.quorum.stale == 0 || !atomic_load(&comm->tensors->undrawn)) {
    return LCOMM_OK;
  }
  return lcomm_refuse(comm, LCOMM_ERR_STATE,
                      "lcomm_tensor_ready(%s): with stale= results come later than their steps; "
                      "after lcomm_tensors_wait call lcomm_tensors_next, and apply what it hands "
                      "out, until it says that there is no more",
                      tensor->name);
}

static lcomm_status check_takes_part(lcomm_comm *comm, const lcomm_tensor *tensor) {
  if (tensor->frozen) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_tensor_ready(%s): the tensor is frozen and takes part in no step; "
                        "call lcomm_tensor_unfreeze on all ranks between two steps",
                        tensor->name);
  }
  if (!tensor->data && tensor->count > 0) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_tensor_ready(%s): the tensor has no buffer; give it one with "
                        "lcomm_tensor_data_set first",
                        tensor->name);
  }
  return LCOMM_OK;
}

/* Buffers that were set may be where that of another tensor was, but not where one is in this
 * step. Of two that are reported at the same time by two threads neither sees the other. */
static lcomm_status check_alone_in_step(lcomm_comm *comm, const lcomm_tensor *tensor) {
  const lcomm_tensor_set *set = comm->tensors;
  for (size_t i = 0; atomic_load(&set->moved) && i < set->count; i++) {
    const lcomm_tensor *other = set->list[i];
    if (other != tensor && atomic_load(&other->ready) && !atomic_load(&other->returned) &&
        lcomm_tensors_overlap(tensor, other)) {
      return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                          "lcomm_tensor_ready(%s): its buffer overlaps that of tensor %s, which is "
                          "in this step, too; give it one of its own with lcomm_tensor_data_set",
                          tensor->name, other->name);
    }
  }
  return LCOMM_OK;
}

/* What can start now is started: by the progress thread, or, where the tensors are on a device, by
 * this call, as that thread calls no device. */
static lcomm_status start_ready(lcomm_comm *comm) {
  if (!lcomm_memory_is_on_device(comm->tensors->location)) {
    lcomm_progress_thread_wake(comm->progress.thread);
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = lcomm_buckets_start(comm);
  lcomm_exit(comm);
  return status;
}

lcomm_status lcomm_tensor_ready(lcomm_comm *comm, lcomm_tensor *tensor) {
  LCOMM_TRY(lcomm_tensor_check(comm, tensor, "lcomm_tensor_ready"));
  LCOMM_TRY((lcomm_status)atomic_load(&comm->errors.status));
  LCOMM_TRY(lcomm_servers_check(comm, "lcomm_tensor_ready"));
  LCOMM_TRY(check_takes_part(comm, tensor));
  LCOMM_TRY(check_results_taken(comm, tensor));
  LCOMM_TRY(check_alone_in_step(comm, tensor));
  LCOMM_TRY(atomic_load(&tensor->ready) ? LCOMM_OK : lcomm_tensor_mirror_bring(tensor));
  atomic_store(&comm->deferred.open, true);
  if (atomic_exchange(&tensor->ready, true)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "tensor %s was reported ready twice in one step; call lcomm_tensors_wait "
                        "between the steps",
                        tensor->name);
  }
  return comm->progress.thread ? start_ready(comm) : LCOMM_OK;
}

/* --------------------------------------------------------------- waiting */

static lcomm_status check_all_ready(lcomm_comm *comm) {
  for (size_t i = 0; i < comm->tensors->count; i++) {
    if (!comm->tensors->list[i]->frozen && !atomic_load(&comm->tensors->list[i]->ready)) {
      return lcomm_refuse(comm, LCOMM_ERR_STATE,
                          "lcomm_tensors_wait: tensor %s has not been reported ready in this step",
                          comm->tensors->list[i]->name);
    }
  }
  return LCOMM_OK;
}

void lcomm_step_finish(lcomm_comm *comm) {
  for (size_t i = 0; i < comm->tensors->count; i++) {
    atomic_store(&comm->tensors->list[i]->returned, false);
    atomic_store(&comm->tensors->list[i]->ready, false);
  }
  comm->tensors->begun = false;
  comm->tensors->buckets_started = 0;
  comm->tensors->complete = false;
  comm->tensors->untold = true;
  comm->tensors->not_finite.last = comm->tensors->not_finite.step;
  comm->tensors->not_finite.step = 0;
  comm->deferred.step++;
  lcomm_step_end(comm);
  if (comm->observers.trace) {
    lcomm_trace_step(comm->observers.trace, comm->deferred.step);
  }
  atomic_store(&comm->tensors->undrawn, true);
  atomic_store(&comm->deferred.open, lcomm_results_are_under_way(comm));
}

/* Where ranks may be lost, a step counts when all have its results: who has passed here knows it.
 * This barrier is a sum: of what ranks ask for. */
static lcomm_status commit_step(lcomm_comm *comm) {
  if (!comm->bootstrap.elastic) {
    return LCOMM_OK;
  }
  lcomm_changes_barrier changes;
  lcomm_call call = lcomm_changes_begin(comm, &changes);
  call.op_kind = LCOMM_OP_KIND_TENSORS;
  comm->tensors->complete = true;
  LCOMM_TRY(lcomm_tensors_call(comm, &call));
  lcomm_changes_end(comm, &changes);
  return LCOMM_OK;
}

static lcomm_status finish_step(lcomm_comm *comm) {
  lcomm_status status = lcomm_control_receive(comm);
  if (status != LCOMM_OK || comm->tensors->count == 0) {
    return status;
  }
  lcomm_auto_watch_wait(comm);
  status = lcomm_servers_check(comm, "lcomm_tensors_wait");
  if (status == LCOMM_OK) {
    status = check_all_ready(comm);
  }
  if (status == LCOMM_OK) {
    status = lcomm_tensors_plan(comm);
  }
  if (status == LCOMM_OK) {
    status = lcomm_buckets_start(comm);
  }
  for (size_t i = 0; status == LCOMM_OK && i < comm->tensors->bucket_count; i++) {
    status = lcomm_bucket_wait(&comm->tensors->buckets[i]);
  }
  if (status == LCOMM_OK) {
    status = lcomm_tensor_mirrors_return(comm);
  }
  if (status == LCOMM_OK) {
    status = lcomm_results_await(comm);
  }
  if (status == LCOMM_OK) {
    status = lcomm_guard_check(comm);
  }
  if (status == LCOMM_OK) {
    status = commit_step(comm);
  }
  if (status == LCOMM_OK) {
    lcomm_step_finish(comm);
    status = lcomm_auto_step_over(comm);
  }
  if (status == LCOMM_OK) {
    status = lcomm_guard_change(comm);
  }
  return status;
}

lcomm_status lcomm_tensors_wait(lcomm_comm *comm) {
  lcomm_status status = lcomm_enter_given(comm, "lcomm_tensors_wait");
  if (status != LCOMM_OK) {
    return status;
  }
  status = finish_step(comm);
  comm->tensors->untold &= status != LCOMM_OK;
  lcomm_exit(comm);
  return status;
}

uint64_t lcomm_tensors_not_finite(const lcomm_comm *comm) {
  return comm ? comm->tensors->not_finite.last : 0;
}

lcomm_status lcomm_tensors_momentum(lcomm_comm *comm, int *is_momentum) {
  if (!comm || !is_momentum) {
    return lcomm_refuse_null(comm, "lcomm_tensors_momentum", "is_momentum");
  }
  *is_momentum = atomic_load(&comm->tensors->sends_momentum);
  return LCOMM_OK;
}

/* -------------------------------------------------------------- residuals */

lcomm_ef_shard lcomm_tensor_shard(const lcomm_tensor *tensor,
                                  const lcomm_feedback_state *feedback) {
  return lcomm_ef_shard_of(feedback, tensor->offset, tensor->count);
}

/* What is added to the next results of a tensor, NULL: nothing. */
static const float *carried_to(const lcomm_tensor *tensor) {
  const lcomm_bucket *bucket = tensor->bucket;
  const float *carried = bucket ? bucket->ef.state.carried : tensor->state.carried;
  return carried && bucket ? carried + tensor->offset : carried;
}

/* What is carried to the next result of a tensor, as a residual of this rank: writes `count`
 * values. One rank answers for all; false on the others, and when there is nothing. */
static bool get_carried(const lcomm_tensor *tensor, float *residual) {
  const lcomm_comm *comm = tensor->comm;
  const float *carried = carried_to(tensor);
  if (!carried || comm->rank != 0) {
    return false;
  }
  float units = tensor->op == LCOMM_AVG ? (float)comm->size : 1.0f;
  for (uint64_t i = 0; i < tensor->count; i++) {
    residual[i] = units * carried[i];
  }
  return true;
}

lcomm_status lcomm_tensor_residual(lcomm_comm *comm, const lcomm_tensor *tensor, float *residual) {
  LCOMM_TRY(lcomm_tensor_check(comm, tensor, "lcomm_tensor_residual"));
  if (!residual) {
    return lcomm_refuse_null(comm, "lcomm_tensor_residual", "residual");
  }
  if (atomic_load(&comm->deferred.open)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_tensor_residual: a step is in flight; call it between the steps");
  }
  if (get_carried(tensor, residual)) {
    return LCOMM_OK;
  }
  memset(residual, 0, tensor->count * sizeof(float));
  const lcomm_feedback_state *feedback = tensor->bucket ? tensor->bucket->ef.state.feedback : NULL;
  const lcomm_ef_parked *state = &tensor->state;
  lcomm_ef_shard kept = lcomm_tensor_shard(tensor, feedback);
  if (kept.n > 0) {
    memcpy(residual + kept.first, feedback->residual.now + kept.at, kept.n * sizeof(float));
  } else if (state->residual) {
    memcpy(residual + state->first, state->residual, state->count * sizeof(float));
  }
  return LCOMM_OK;
}

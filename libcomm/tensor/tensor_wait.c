/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Waiting for one tensor. */

#include "libcomm/base/clock.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/siblings.h"
#include "libcomm/tensor/tensor_mirror.h"

/* Buckets start in order, so one that has not started yet waits for the first tensor of its
 * own or of a bucket before it that is not ready; the first one for all, where they are clipped
 * together. NULL: none does. */
static const lcomm_tensor *find_missing(const lcomm_comm *comm, const lcomm_tensor *tensor) {
  const lcomm_tensor_set *tensors = comm->tensors;
  const lcomm_bucket *last = lcomm_step_clips_globally(comm)
                                 ? tensors->buckets + tensors->bucket_count - 1
                                 : tensor->bucket;
  for (const lcomm_bucket *it = tensors->buckets + tensors->buckets_started; it <= last; it++) {
    for (size_t i = 0; i < it->tensor_count; i++) {
      if (!atomic_load(&it->tensors[i]->ready)) {
        return it->tensors[i];
      }
    }
  }
  return NULL;
}

static bool is_over(const lcomm_comm *comm, const lcomm_tensor *tensor) {
  return (size_t)(tensor->bucket - comm->tensors->buckets) < comm->tensors->buckets_started &&
         tensor->bucket->over;
}

/* Check that the communicator has not failed and that the tensor is in this step; start its bucket
 * if it can start. */
static lcomm_status begin(lcomm_comm *comm, const lcomm_tensor *tensor, const char *call) {
  LCOMM_TRY(lcomm_control_receive(comm));
  if (comm->settings.policy.quorum.stale > 0) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "%s(%s): with stale= results come later than their steps, all tensors' "
                        "together; call lcomm_tensors_wait, then lcomm_tensors_next",
                        call, tensor->name);
  }
  if (!atomic_load(&tensor->ready)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "%s(%s): the tensor has not been reported ready in this step", call,
                        tensor->name);
  }
  LCOMM_TRY(lcomm_tensors_plan(comm));
  return lcomm_buckets_start(comm);
}

static lcomm_status wait_for(lcomm_comm *comm, lcomm_tensor *tensor) {
  LCOMM_TRY(begin(comm, tensor, "lcomm_tensor_wait"));
  const lcomm_tensor *missing = find_missing(comm, tensor);
  if (missing) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_tensor_wait(%s): its sum starts after that of tensor %s, which has "
                        "not been reported ready in this step",
                        tensor->name, missing->name);
  }
  LCOMM_TRY(lcomm_bucket_wait(tensor->bucket));
  LCOMM_TRY(lcomm_tensor_mirror_return(tensor));
  atomic_store(&tensor->returned, true);
  return LCOMM_OK;
}

lcomm_status lcomm_tensor_wait(lcomm_comm *comm, lcomm_tensor *tensor) {
  LCOMM_TRY(lcomm_tensor_check(comm, tensor, "lcomm_tensor_wait"));
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = wait_for(comm, tensor);
  lcomm_exit(comm);
  return status;
}

/* The first test that finds the sum in flight, or one of low rank that holds it up, stores the time
 * from which the time-out counts. */
static void begin_patience(lcomm_comm *comm, const lcomm_bucket *bucket) {
  const lcomm_bucket *next = comm->tensors->buckets + comm->tensors->buckets_started;
  for (lcomm_operation *it = comm->operations.first; it; it = it->next) {
    bool awaited = it->owner == bucket || it->owner == next;
    if (awaited && !(it->tested_s > 0)) {
      it->tested_s = lcomm_clock_s();
    }
  }
}

/* Make all progress that is possible now, in other communicators, too. */
static lcomm_status move_on(lcomm_comm *comm, const lcomm_tensor *tensor) {
  bool moved = true;
  lcomm_status status = LCOMM_OK;
  while (moved && status == LCOMM_OK && !is_over(comm, tensor)) {
    moved = false;
    status = lcomm_operations_move(comm, &moved);
  }
  if (status == LCOMM_OK) {
    status = lcomm_buckets_end_shards(comm);
  }
  if (status != LCOMM_OK || is_over(comm, tensor)) {
    return status;
  }
  lcomm_siblings_move(comm);
  begin_patience(comm, tensor->bucket);
  return lcomm_operations_check(comm);
}

static lcomm_status test(lcomm_comm *comm, lcomm_tensor *tensor, int *done) {
  lcomm_status status = begin(comm, tensor, "lcomm_tensor_test");
  if (status == LCOMM_OK && !is_over(comm, tensor)) {
    status = move_on(comm, tensor);
  }
  if (status == LCOMM_OK && is_over(comm, tensor)) {
    status = lcomm_tensor_mirror_return(tensor);
  }
  if (status == LCOMM_OK) {
    *done = is_over(comm, tensor);
    atomic_store(&tensor->returned, *done != 0);
  }
  return status;
}

lcomm_status lcomm_tensor_test(lcomm_comm *comm, lcomm_tensor *tensor, int *done) {
  if (!comm || !done) {
    return lcomm_refuse_null(comm, "lcomm_tensor_test", "done");
  }
  LCOMM_TRY(lcomm_tensor_check(comm, tensor, "lcomm_tensor_test"));
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = test(comm, tensor, done);
  lcomm_exit(comm);
  return status;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A bucket's vector: from the tensors to what is summed, and from the sums back. */

#include <stdlib.h>

#include "libcomm/engine/backend.h"
#include "libcomm/engine/run_values.h"
#include "libcomm/observe/capture.h"
#include "libcomm/tensor/tensor_mirror.h"

static uint8_t *vector_of(const lcomm_bucket *bucket) {
  return bucket->vector ? bucket->vector : lcomm_tensor_memory(bucket->tensors[0]);
}

/* Elements of the vector, `first` of them on. */
static lcomm_buffer part_of(const lcomm_bucket *bucket, uint64_t first, uint64_t count) {
  return (lcomm_buffer){.data = vector_of(bucket) + first * bucket->element_size,
                        .count = count,
                        .dtype = lcomm_sum_dtype(bucket->dtype),
                        .location = bucket->comm->tensors->location};
}

static lcomm_buffer place_of(const lcomm_bucket *bucket, const lcomm_tensor *tensor) {
  return part_of(bucket, bucket->vector ? tensor->offset : 0, tensor->count);
}

static lcomm_buffer buffer_of(const lcomm_tensor *tensor) {
  return (lcomm_buffer){.data = lcomm_tensor_memory(tensor),
                        .count = tensor->count,
                        .dtype = tensor->dtype,
                        .location = tensor->comm->tensors->location};
}

static void trace_copy(const lcomm_bucket *bucket, const lcomm_run *run, double begin_s) {
  lcomm_exec_trace_copy(run, begin_s, bucket->count * bucket->element_size, bucket->name);
}

/* -------------------------------------------------------------- staging in */

/* A gradient is there when the stream that makes it has come to the event. */
static lcomm_status load_tensor(lcomm_run *run, const lcomm_bucket *bucket, lcomm_tensor *tensor) {
  lcomm_buffer gradient = buffer_of(tensor);
  if (atomic_exchange(&tensor->on_stream, false)) {
    LCOMM_TRY(run->backend->queue->follow_event(run, tensor->event));
  }
  return run->backend->vectors->load(run, &gradient, tensor->before, place_of(bucket, tensor).data);
}

static lcomm_captured_tensor captured_tensor(const void *bucket, size_t index) {
  const lcomm_tensor *tensor = ((const lcomm_bucket *)bucket)->tensors[index];
  return (lcomm_captured_tensor){.name = tensor->name,
                                 .count = tensor->count,
                                 .rows = tensor->rows,
                                 .columns = tensor->columns};
}

static lcomm_status capture(const lcomm_bucket *bucket, lcomm_run *run) {
  const lcomm_comm *comm = bucket->comm;
  lcomm_run_values values = {
      .run = run, .vector = vector_of(bucket), .size = bucket->count * sizeof(float)};
  lcomm_captured_bucket it = {.step = comm->deferred.step,
                              .number = (size_t)(bucket - comm->tensors->buckets),
                              .tensor_count = bucket->tensor_count,
                              .dtype = bucket->dtype,
                              .op = bucket->op,
                              .count = bucket->count,
                              .values = lcomm_run_values_get,
                              .owner = &values,
                              .tensor = captured_tensor,
                              .bucket = bucket};
  lcomm_capture_bucket(comm->observers.capture, &it);
  free(values.copy);
  return values.status;
}

/* Each tensor of this rank, or all of them by one factor, before anything is accumulated. */
static lcomm_status clip(const lcomm_bucket *bucket, lcomm_run *run) {
  lcomm_buffer all = part_of(bucket, 0, bucket->count);
  if (lcomm_step_clips_globally(bucket->comm)) {
    return lcomm_step_clip(bucket->comm, run, &all);
  }
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    lcomm_buffer place = place_of(bucket, bucket->tensors[i]);
    LCOMM_TRY(lcomm_ef_clip(&bucket->ef, run, place.data, place.count));
  }
  return LCOMM_OK;
}

static lcomm_status load_all(lcomm_bucket *bucket, lcomm_run *run) {
  lcomm_buffer all = part_of(bucket, 0, bucket->count);
  double begin_s = lcomm_exec_copy_begin(run);
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    LCOMM_TRY(load_tensor(run, bucket, bucket->tensors[i]));
  }
  if (bucket->comm->observers.capture && lcomm_run_has_values(run)) {
    LCOMM_TRY(capture(bucket, run));
  }
  trace_copy(bucket, run, begin_s);
  return lcomm_step_clips_globally(bucket->comm) ? lcomm_step_clip_count(bucket->comm, run, &all)
                                                 : LCOMM_OK;
}

/* The vector of what the run will sum. */
lcomm_status lcomm_bucket_stage_in(lcomm_bucket *bucket) {
  lcomm_run *run = bucket->run;
  lcomm_ef_begin(&bucket->ef, run);
  lcomm_run_entry entry = lcomm_run_enter(run);
  lcomm_status status = load_all(bucket, run);
  lcomm_run_leave(run, entry);
  return status;
}

lcomm_status lcomm_bucket_amend(lcomm_bucket *bucket) {
  lcomm_run *run = bucket->run;
  lcomm_run_entry entry = lcomm_run_enter(run);
  lcomm_status status = clip(bucket, run);
  if (status == LCOMM_OK) {
    status =
        lcomm_ef_contribute(&bucket->ef, run, (float *)(void *)vector_of(bucket), bucket->count);
  }
  if (status == LCOMM_OK) {
    status = lcomm_guard_take(bucket, run, vector_of(bucket));
  }
  if (status == LCOMM_OK && lcomm_ef_lowrank_is_first(&bucket->ef, run)) {
    status = lcomm_ef_lowrank_project(&bucket->ef, run, (float *)(void *)vector_of(bucket));
  }
  lcomm_run_leave(run, entry);
  return status;
}

/* ------------------------------------------------------------- staging out */

/* Momentum and what is carried, then the factors. */
static lcomm_status finish_sums(lcomm_bucket *bucket, lcomm_run *run) {
  lcomm_buffer all = part_of(bucket, 0, bucket->count);
  LCOMM_TRY(lcomm_ef_finish(&bucket->ef, run, all.data));
  LCOMM_TRY(bucket->op == LCOMM_AVG ? run->backend->vectors->average(run, &all) : LCOMM_OK);
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    lcomm_buffer place = place_of(bucket, bucket->tensors[i]);
    LCOMM_TRY(lcomm_run_scale(run, &place, bucket->tensors[i]->after));
  }
  return run->backend->vectors->count_not_finite(run, &all);
}

lcomm_status lcomm_bucket_stage_out(lcomm_run *run) {
  lcomm_bucket *bucket = run->data.owner;
  double begin_s = lcomm_exec_copy_begin(run);
  if (lcomm_ef_lowrank_is_first(&bucket->ef, run)) {
    return lcomm_ef_lowrank_turn(&bucket->ef, run);
  }
  if (lcomm_ef_lowrank_is_second(&bucket->ef, run)) {
    LCOMM_TRY(lcomm_ef_lowrank_finish(&bucket->ef, run));
  }
  LCOMM_TRY(lcomm_guard_keep(bucket, run, vector_of(bucket)));
  LCOMM_TRY(finish_sums(bucket, run));
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    lcomm_buffer result = buffer_of(bucket->tensors[i]);
    LCOMM_TRY(
        run->backend->vectors->store(run, place_of(bucket, bucket->tensors[i]).data, &result));
  }
  trace_copy(bucket, run, begin_s);
  return LCOMM_OK;
}

/* ------------------------------------------------------------ what is summed */

uint8_t *lcomm_bucket_summed(const lcomm_bucket *bucket) {
  const lcomm_ef_lowrank *lowrank = &bucket->ef.lowrank;
  if (lcomm_ef_lowrank_is_first(&bucket->ef, bucket->run)) {
    return (uint8_t *)lowrank->left.values;
  }
  bool second = lcomm_ef_lowrank_is_second(&bucket->ef, bucket->run);
  return second ? (uint8_t *)lowrank->right.values : vector_of(bucket);
}

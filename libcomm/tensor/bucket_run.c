/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Buckets, step by step: from the tensors to the vector, an operation, and back. */

#include <stdlib.h>
#include <xxhash.h>

#include "libcomm/engine/backend.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/peer_memory.h"
#include "libcomm/engine/run_values.h"
#include "libcomm/engine/tape.h"
#include "libcomm/observe/capture.h"
#include "libcomm/tensor/bucket.h"

static uint8_t *vector_of(const lcomm_bucket *bucket) {
  return bucket->vector ? bucket->vector : bucket->tensors[0]->data;
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
  return (lcomm_buffer){.data = tensor->data,
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

static const char *captured_tensor(const void *bucket, size_t index, uint64_t *count) {
  const lcomm_tensor *tensor = ((const lcomm_bucket *)bucket)->tensors[index];
  *count = tensor->count;
  return tensor->name;
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

/* What is played needs somebody else to move its messages. */
static lcomm_status take_run(lcomm_bucket *bucket) {
  LCOMM_TRY(lcomm_ef_take_run(&bucket->ef, bucket->comm->deferred.step, &bucket->run));
  if (bucket->run->tape && bucket->comm->size > 1) {
    (void)lcomm_proxy_start(bucket->comm);
  }
  return LCOMM_OK;
}

/* The vector of what the run will sum. */
static lcomm_status stage_in(lcomm_bucket *bucket) {
  lcomm_run *run = bucket->run;
  lcomm_ef_begin(&bucket->ef, run);
  lcomm_run_entry entry = lcomm_run_enter(run);
  lcomm_status status = load_all(bucket, run);
  lcomm_run_leave(run, entry);
  return status;
}

static lcomm_status amend(lcomm_bucket *bucket) {
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

static lcomm_status stage_out(lcomm_run *run) {
  lcomm_bucket *bucket = run->data.owner;
  double begin_s = lcomm_exec_copy_begin(run);
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

static void end_bucket(lcomm_operation *operation) {
  lcomm_bucket *bucket = operation->owner;
  if (operation->status == LCOMM_OK) {
    bucket->comm->tensors->step_not_finite += operation->not_finite;
    lcomm_ef_end(&bucket->ef, operation->run);
  }
  bucket->over = true;
  lcomm_auto_watch_end(bucket->comm);
  lcomm_operation_release(bucket->comm, operation);
}

/* ------------------------------------------------------------------- steps */

static bool is_ready(const lcomm_bucket *bucket) {
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    if (!atomic_load(&bucket->tensors[i]->ready)) {
      return false;
    }
  }
  return true;
}

/* A hash of the factors of all tensors, for ranks to compare; 0 when all are 1. */
static uint64_t hash_factors(const lcomm_bucket *bucket) {
  uint64_t hash = 0;
  bool all_one = true;
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    double pair[2] = {bucket->tensors[i]->before, bucket->tensors[i]->after};
    all_one &= lcomm_factor_is_one(pair[0]) && lcomm_factor_is_one(pair[1]);
    hash = XXH3_64bits_withSeed(pair, sizeof(pair), hash);
  }
  return all_one ? 0 : hash | 1;
}

/* All that it does on its device, into the lanes. */
static lcomm_status play(const lcomm_bucket *bucket) {
  lcomm_run *run = bucket->run;
  lcomm_tape_rewind(run);
  lcomm_run_entry entry = lcomm_run_enter(run);
  lcomm_status status = lcomm_tape_play(run);
  lcomm_run_leave(run, entry);
  return status;
}

/* Its vector is staged in. */
static lcomm_status start_bucket(lcomm_bucket *bucket) {
  lcomm_comm *comm = bucket->comm;
  lcomm_operation *operation = NULL;
  LCOMM_TRY(amend(bucket));
  if (bucket->run->tape) {
    lcomm_peer_memory_open(bucket->run);
  }
  bucket->over = false;
  lcomm_operation_data data = {.vector = vector_of(bucket),
                               .op = bucket->op,
                               .before = 1,
                               .after = 1,
                               .factors = hash_factors(bucket),
                               .op_kind = LCOMM_OP_KIND_BUCKET,
                               .name = bucket->name,
                               .stage_out = stage_out,
                               .owner = bucket};
  lcomm_status status = lcomm_operation_start(comm, bucket->run, &data, &operation);
  if (operation) {
    operation->owner = bucket;
    operation->awaited = &bucket->over;
    operation->end = end_bucket;
    lcomm_auto_watch_begin(comm);
  }
  return status == LCOMM_OK && bucket->run->tape ? play(bucket) : status;
}

/* The first bucket is about to start. Where it depends on all others: when all are ready, all are
 * staged in. What all need is got now: on a device that may wait for what is in streams, and so for
 * peers, who may need the caller for something else before they report their tensors. */
static lcomm_status begin_step(lcomm_comm *comm, bool *begun) {
  lcomm_tensor_set *tensors = comm->tensors;
  bool together = lcomm_step_clips_globally(comm);
  *begun = true;
  for (size_t i = 0; together && i < tensors->bucket_count; i++) {
    *begun &= is_ready(&tensors->buckets[i]);
  }
  if (!*begun) {
    return LCOMM_OK;
  }
  lcomm_step_begin(comm);
  tensors->counted = NULL;
  for (size_t i = 0; i < tensors->bucket_count; i++) {
    LCOMM_TRY(take_run(&tensors->buckets[i]));
  }
  for (size_t i = 0; together && i < tensors->bucket_count; i++) {
    LCOMM_TRY(stage_in(&tensors->buckets[i]));
  }
  return LCOMM_OK;
}

/* Is it a bucket's turn whose tensors are ready? */
static bool may_start(const lcomm_comm *comm) {
  const lcomm_tensor_set *tensors = comm->tensors;
  return lcomm_tensors_are_planned(comm) && tensors->buckets_started < tensors->bucket_count &&
         is_ready(&tensors->buckets[tensors->buckets_started]);
}

static lcomm_status start_all(lcomm_comm *comm) {
  lcomm_tensor_set *tensors = comm->tensors;
  bool begun = true, together = lcomm_step_clips_globally(comm);
  LCOMM_TRY(tensors->buckets_started == 0 ? begin_step(comm, &begun) : LCOMM_OK);
  while (begun && may_start(comm)) {
    lcomm_bucket *next = &tensors->buckets[tensors->buckets_started];
    LCOMM_TRY(together ? LCOMM_OK : stage_in(next));
    LCOMM_TRY(start_bucket(next));
    tensors->buckets_started++;
  }
  return LCOMM_OK;
}

/* Between two of its calls of CUDA another thread may have the communicator's turn. */
static lcomm_status start_on_device(lcomm_comm *comm) {
  lcomm_device_turn_enter(comm);
  lcomm_status status = may_start(comm) ? start_all(comm) : LCOMM_OK;
  lcomm_device_turn_leave(comm);
  return status;
}

lcomm_status lcomm_buckets_start(lcomm_comm *comm) {
  if (!may_start(comm)) {
    return LCOMM_OK;
  }
  bool on_device = lcomm_memory_is_on_device(comm->tensors->location);
  return on_device ? start_on_device(comm) : start_all(comm);
}

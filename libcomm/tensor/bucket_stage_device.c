/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Data of buckets whose tensors are on a device: what bucket_stage.c does on the
 * host, in the stream of a run. */

#include "libcomm/engine/run_device.h"
#include "libcomm/engine/typed_copy.h"
#include "libcomm/tensor/bucket.h"

/* ----------------------------------------------------------- staging out */

/* Momentum and what is carried, then the factors. */
static int finish_sums(lcomm_bucket *bucket, const lcomm_run *run) {
  const lcomm_run_device *device = run->device;
  void *vector = lcomm_bucket_vector(bucket);
  int error = lcomm_ef_finish(&bucket->ef, run, vector);
  if (!error && bucket->op == LCOMM_AVG) {
    error = lcomm_device_average(device, vector, bucket->dtype, bucket->count, bucket->comm->size);
  }
  for (size_t i = 0; i < bucket->tensor_count && !error; i++) {
    void *place = lcomm_bucket_place(bucket, i);
    error = lcomm_device_load(device, place, lcomm_sum_dtype(bucket->dtype),
                              bucket->tensors[i]->count, bucket->tensors[i]->after, place);
  }
  return error;
}

static int stage_out(const lcomm_run *run) {
  const lcomm_run_device *device = run->device;
  lcomm_bucket *bucket = device->owner;
  int error = finish_sums(bucket, run);
  error = error ? error
                : lcomm_device_count_not_finite(device, lcomm_bucket_vector(bucket), bucket->dtype,
                                                bucket->count);
  for (size_t i = 0; i < bucket->tensor_count && !error; i++) {
    const lcomm_tensor *tensor = bucket->tensors[i];
    error = lcomm_device_store(device, lcomm_bucket_place(bucket, i), tensor->dtype, tensor->count,
                               tensor->data);
  }
  return error;
}

/* ------------------------------------------------------------ staging in */

/* The gradient is there when the stream that makes it has come to the event. */
static int follow(const lcomm_run_device *device, lcomm_tensor *tensor) {
  return atomic_exchange(&tensor->on_stream, false)
             ? device->table->stream.wait(device->stream, tensor->event)
             : 0;
}

static int stage_in(const lcomm_bucket *bucket, const lcomm_run *run) {
  const lcomm_run_device *device = run->device;
  int error = 0;
  for (size_t i = 0; i < bucket->tensor_count && !error; i++) {
    lcomm_tensor *tensor = bucket->tensors[i];
    error = follow(device, tensor);
    error = error ? error
                  : lcomm_device_load(device, tensor->data, tensor->dtype, tensor->count,
                                      tensor->before, lcomm_bucket_place(bucket, i));
    error = error ? error
                  : lcomm_ef_clip(&bucket->ef, run, lcomm_bucket_place(bucket, i), tensor->count);
  }
  return error;
}

lcomm_status lcomm_bucket_stage_in_device(lcomm_bucket *bucket, lcomm_run *run) {
  int before = lcomm_run_device_enter(run);
  int error = stage_in(bucket, run);
  lcomm_run_device_leave(run, before);
  run->device->owner = bucket;
  run->device->stage_out = stage_out;
  run->device->on_stream = false;
  return error ? lcomm_run_device_failed(run, "bringing in a bucket", error) : LCOMM_OK;
}

void lcomm_bucket_end_device(lcomm_bucket *bucket, const lcomm_run *run) {
  lcomm_comm *comm = bucket->comm;
  comm->stats.not_finite += *run->device->found_here;
  comm->tensors->step_not_finite += *run->device->found_here;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Data of buckets whose tensors are on a device: what bucket_stage.c does on the
 * host, in the stream of a run. */

#include <math.h>
#include <stdlib.h>

#include "libcomm/engine/run_device.h"
#include "libcomm/engine/typed_copy.h"
#include "libcomm/feedback/ef_memory.h"
#include "libcomm/tensor/bucket.h"

/* ----------------------------------------------------------- staging out */

/* A loaded residual that nobody keeps any more, the same on all ranks. */
static int pay_floats(const lcomm_bucket *bucket, const lcomm_run_device *device) {
  lcomm_cuda_code both[2] = {{.kind = LCOMM_CUDA_F32, .code = lcomm_bucket_vector(bucket)},
                             {.kind = LCOMM_CUDA_F32, .code = bucket->carried}};
  lcomm_cuda_sum sum = {.sources = both,
                        .count = 2,
                        .op = LCOMM_CUDA_SUM,
                        .factor = 1.0f,
                        .destination = lcomm_bucket_vector(bucket),
                        .n = bucket->count,
                        .parts = 1};
  return device->table->kernels->sum(&sum, device->stream);
}

/* Sums of float64 get theirs on the host: it happens once after a state was loaded.
 * Plain memory: to get pinned memory now could wait for streams that are held. */
static int pay_doubles(const lcomm_bucket *bucket, const lcomm_run_device *device) {
  size_t size = bucket->count * sizeof(double);
  double *sums = malloc(size + 1);
  int error =
      sums ? device->table->copy(sums, lcomm_bucket_vector(bucket), size, device->stream) : -1;
  error = error ? error : device->table->stream_finish(device->stream);
  for (uint64_t i = 0; i < bucket->count && !error; i++) {
    sums[i] += (double)bucket->carried[i];
  }
  error =
      error ? error : device->table->copy(lcomm_bucket_vector(bucket), sums, size, device->stream);
  error = error ? error : device->table->stream_finish(device->stream);
  free(sums);
  return error;
}

static int pay_owed(const lcomm_bucket *bucket, const lcomm_run_device *device) {
  if (!bucket->carried) {
    return 0;
  }
  if (bucket->dtype == LCOMM_FLOAT64) {
    return pay_doubles(bucket, device);
  }
  return lcomm_sum_dtype(bucket->dtype) == LCOMM_FLOAT32 ? pay_floats(bucket, device) : 0;
}

/* What the sums still need. */
static int finish_sums(const lcomm_bucket *bucket, const lcomm_run *run) {
  const lcomm_run_device *device = run->device;
  void *vector = lcomm_bucket_vector(bucket);
  int error = 0;
  if (lcomm_bucket_needs_velocity(bucket, run)) {
    error =
        device->table->kernels->momentum((float)bucket->comm->settings.policy.momentum,
                                         bucket->velocity, vector, bucket->count, device->stream);
  }
  error = error ? error : pay_owed(bucket, device);
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
  const lcomm_bucket *bucket = device->owner;
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
             ? device->table->stream_wait(device->stream, tensor->event)
             : 0;
}

static int clip(const lcomm_bucket *bucket, const lcomm_run_device *device, size_t index) {
  const lcomm_comm *comm = bucket->comm;
  if (bucket->exact || comm->settings.policy.clip <= 0) {
    return 0;
  }
  return device->table->kernels->clip(
      lcomm_bucket_place(bucket, index), bucket->tensors[index]->count,
      comm->settings.policy.clip / sqrt((double)comm->size), device->scratch, device->stream);
}

static int stage_in(const lcomm_bucket *bucket, const lcomm_run_device *device) {
  int error = 0;
  for (size_t i = 0; i < bucket->tensor_count && !error; i++) {
    lcomm_tensor *tensor = bucket->tensors[i];
    error = follow(device, tensor);
    error = error ? error
                  : lcomm_device_load(device, tensor->data, tensor->dtype, tensor->count,
                                      tensor->before, lcomm_bucket_place(bucket, i));
    error = error ? error : clip(bucket, device, i);
  }
  return error;
}

lcomm_status lcomm_bucket_stage_in_device(lcomm_bucket *bucket, lcomm_run *run) {
  int before = lcomm_run_device_enter(run);
  int error = stage_in(bucket, run->device);
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
  lcomm_ef_memory_free(comm->tensors->location, bucket->carried);
  bucket->carried = NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Buckets, step by step: their operations start and end. */

#include "libcomm/engine/run_device.h"
#include "libcomm/tensor/bucket.h"

static void end_bucket(lcomm_operation *operation) {
  lcomm_bucket *bucket = operation->owner;
  if (operation->status == LCOMM_OK && operation->run->device) {
    lcomm_bucket_end_device(bucket, operation->run);
  } else if (operation->status == LCOMM_OK) {
    lcomm_bucket_stage_out(bucket, operation->run);
  }
  if (operation->status == LCOMM_OK) {
    lcomm_ef_end(&bucket->ef, operation->run);
  }
  bucket->over = true;
  lcomm_operation_release(bucket->comm, operation);
}

static bool is_ready(const lcomm_bucket *bucket) {
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    if (!atomic_load(&bucket->tensors[i]->ready)) {
      return false;
    }
  }
  return true;
}

static lcomm_status start_bucket(lcomm_bucket *bucket) {
  lcomm_comm *comm = bucket->comm;
  lcomm_run *run = NULL;
  lcomm_status status = lcomm_ef_take_run(&bucket->ef, comm->deferred.step, &run);
  if (status != LCOMM_OK) {
    return status;
  }
  if (run->device) {
    status = lcomm_bucket_stage_in_device(bucket, run);
  } else {
    lcomm_bucket_stage_in(bucket, run);
  }
  if (status != LCOMM_OK) {
    return status;
  }
  bucket->over = false;
  lcomm_operation *operation = NULL;
  lcomm_operation_data data = {.vector = lcomm_bucket_vector(bucket),
                               .op = bucket->op,
                               .before = lcomm_bucket_factors(bucket),
                               .after = 1,
                               .op_kind = LCOMM_OP_KIND_BUCKET,
                               .name = bucket->name};
  status = lcomm_operation_start(comm, run, &data, &operation);
  if (operation) {
    operation->owner = bucket;
    operation->awaited = &bucket->over;
    operation->end = end_bucket;
  }
  return status;
}

lcomm_status lcomm_buckets_start(lcomm_comm *comm) {
  if (!lcomm_tensors_are_planned(comm)) {
    return LCOMM_OK;
  }
  while (comm->tensors->buckets_started < comm->tensors->bucket_count &&
         is_ready(&comm->tensors->buckets[comm->tensors->buckets_started])) {
    LCOMM_TRY(start_bucket(&comm->tensors->buckets[comm->tensors->buckets_started]));
    comm->tensors->buckets_started++;
  }
  return LCOMM_OK;
}

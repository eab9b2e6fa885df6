/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Data of buckets: from the tensors to the vector of a step, and back. */

#include <math.h>
#include <xxhash.h>

#include "libcomm/engine/typed_copy.h"
#include "libcomm/observe/capture.h"
#include "libcomm/tensor/bucket.h"

void *lcomm_bucket_vector(const lcomm_bucket *bucket) {
  return bucket->vector ? bucket->vector : bucket->tensors[0]->data;
}

void *lcomm_bucket_place(const lcomm_bucket *bucket, size_t index) {
  if (!bucket->vector) {
    return bucket->tensors[0]->data;
  }
  return bucket->vector + bucket->tensors[index]->offset * bucket->element_size;
}

/* ---------------------------------------------------------------- factors */

double lcomm_bucket_factors(const lcomm_bucket *bucket) {
  uint64_t hash = 0;
  bool all_one = true;
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    double pair[2] = {bucket->tensors[i]->before, bucket->tensors[i]->after};
    all_one &= lcomm_factor_is_one(pair[0]) && lcomm_factor_is_one(pair[1]);
    hash = XXH3_64bits_withSeed(pair, sizeof(pair), hash);
  }
  return all_one ? 1.0 : 1.0 + ldexp((double)(1 + (hash >> 13)), -52);
}

/* ------------------------------------------------------------ bringing in */

/* Each tensor of this rank, before anything is accumulated. */
static void clip(const lcomm_bucket *bucket, const lcomm_run *run) {
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    lcomm_ef_clip(&bucket->ef, run, lcomm_bucket_place(bucket, i), bucket->tensors[i]->count);
  }
}

static void trace_copy(const lcomm_bucket *bucket, double begin_s) {
  lcomm_copy_trace(bucket->comm, begin_s, bucket->count * bucket->element_size, bucket->name);
}

static const char *captured_tensor(const void *bucket, size_t index, uint64_t *count) {
  const lcomm_tensor *tensor = ((const lcomm_bucket *)bucket)->tensors[index];
  *count = tensor->count;
  return tensor->name;
}

static void capture(const lcomm_bucket *bucket) {
  const lcomm_comm *comm = bucket->comm;
  lcomm_captured_bucket it = {.step = comm->deferred.step,
                              .number = (size_t)(bucket - comm->tensors->buckets),
                              .tensor_count = bucket->tensor_count,
                              .dtype = bucket->dtype,
                              .op = bucket->op,
                              .count = bucket->count,
                              .values = lcomm_bucket_vector(bucket),
                              .tensor = captured_tensor,
                              .bucket = bucket};
  lcomm_capture_bucket(comm->capture, &it);
}

void lcomm_bucket_stage_in(lcomm_bucket *bucket, const lcomm_run *run) {
  double begin_s = lcomm_copy_begin(bucket->comm);
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    const lcomm_tensor *tensor = bucket->tensors[i];
    lcomm_vector_load(bucket->comm, tensor->data, tensor->dtype, tensor->count, tensor->before,
                      lcomm_bucket_place(bucket, i));
  }
  if (bucket->comm->capture) {
    capture(bucket);
  }
  clip(bucket, run);
  trace_copy(bucket, begin_s);
}

/* ----------------------------------------------------------- bringing out */

/* Momentum and what is carried, then the factors. */
static void finish_sums(lcomm_bucket *bucket, const lcomm_run *run) {
  lcomm_ef_finish(&bucket->ef, run, lcomm_bucket_vector(bucket));
  if (bucket->op == LCOMM_AVG) {
    lcomm_vector_average(bucket->comm, lcomm_bucket_vector(bucket), bucket->dtype, bucket->count);
  }
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    const lcomm_tensor *tensor = bucket->tensors[i];
    lcomm_vector_scale(bucket->comm, lcomm_bucket_place(bucket, i), tensor->dtype, tensor->count,
                       tensor->after);
  }
}

void lcomm_bucket_stage_out(lcomm_bucket *bucket, const lcomm_run *run) {
  lcomm_comm *comm = bucket->comm;
  double begin_s = lcomm_copy_begin(bucket->comm);
  finish_sums(bucket, run);
  uint64_t not_finite =
      lcomm_vector_not_finite(comm, lcomm_bucket_vector(bucket), bucket->dtype, bucket->count);
  comm->stats.not_finite += not_finite;
  comm->tensors->step_not_finite += not_finite;
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    const lcomm_tensor *tensor = bucket->tensors[i];
    lcomm_vector_store(comm, lcomm_bucket_place(bucket, i), tensor->dtype, tensor->count,
                       tensor->data);
  }
  trace_copy(bucket, begin_s);
}

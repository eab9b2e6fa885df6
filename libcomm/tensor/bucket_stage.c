/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Data of buckets: from the tensors to the vector of a step, and back. */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libcomm/engine/typed_copy.h"
#include "libcomm/feedback/ef_memory.h"
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
static void clip(lcomm_bucket *bucket) {
  const lcomm_comm *comm = bucket->comm;
  if (bucket->exact || comm->settings.policy.clip <= 0) {
    return;
  }
  uint32_t environment = lcomm_fp_enter();
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    lcomm_feedback_clip(comm->kernels, lcomm_bucket_place(bucket, i), bucket->tensors[i]->count,
                        comm->settings.policy.clip / sqrt((double)comm->size));
  }
  lcomm_fp_leave(environment);
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

void lcomm_bucket_stage_in(lcomm_bucket *bucket) {
  double begin_s = lcomm_copy_begin(bucket->comm);
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    const lcomm_tensor *tensor = bucket->tensors[i];
    lcomm_vector_load(bucket->comm, tensor->data, tensor->dtype, tensor->count, tensor->before,
                      lcomm_bucket_place(bucket, i));
  }
  if (bucket->comm->capture) {
    capture(bucket);
  }
  clip(bucket);
  trace_copy(bucket, begin_s);
}

/* ----------------------------------------------------------- bringing out */

/* A loaded residual that nobody keeps any more, the same on all ranks. Integers
 * are owed nothing: lcomm_state_load refuses it. */
static void pay_owed(lcomm_bucket *bucket) {
  uint64_t count = bucket->carried ? bucket->count : 0;
  void *vector = lcomm_bucket_vector(bucket);
  if (bucket->dtype == LCOMM_FLOAT64) {
    double *sums = vector;
    for (uint64_t i = 0; i < count; i++) {
      sums[i] += (double)bucket->carried[i];
    }
  } else if (lcomm_sum_dtype(bucket->dtype) == LCOMM_FLOAT32) {
    float *sums = vector;
    for (uint64_t i = 0; i < count; i++) {
      sums[i] += bucket->carried[i];
    }
  }
  lcomm_ef_memory_free(0, bucket->carried);
  bucket->carried = NULL;
}

static void add_momentum(lcomm_bucket *bucket) {
  const lcomm_comm *comm = bucket->comm;
  comm->kernels->ef.f32_momentum((float)comm->settings.policy.momentum, bucket->velocity,
                                 lcomm_bucket_vector(bucket), bucket->count);
}

/* What the sums still need. */
static void finish_sums(lcomm_bucket *bucket, bool velocity) {
  uint32_t environment = lcomm_fp_enter();
  if (velocity) {
    add_momentum(bucket);
  }
  pay_owed(bucket);
  lcomm_fp_leave(environment);
  if (bucket->op == LCOMM_AVG) {
    lcomm_vector_average(bucket->comm, lcomm_bucket_vector(bucket), bucket->dtype, bucket->count);
  }
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    const lcomm_tensor *tensor = bucket->tensors[i];
    lcomm_vector_scale(bucket->comm, lcomm_bucket_place(bucket, i), tensor->dtype, tensor->count,
                       tensor->after);
  }
}

void lcomm_bucket_stage_out(lcomm_bucket *bucket, bool velocity) {
  lcomm_comm *comm = bucket->comm;
  double begin_s = lcomm_copy_begin(bucket->comm);
  finish_sums(bucket, velocity);
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

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Buckets, step by step: the run that a step takes. */

#include <stdlib.h>

#include "libcomm/engine/run_device.h"
#include "libcomm/feedback/ef_memory.h"
#include "libcomm/plan/warmup.h"
#include "libcomm/tensor/bucket.h"

/* ------------------------------------------------------------------ runs */

static lcomm_status make_plan(const lcomm_bucket *bucket, bool exact, double density,
                              lcomm_plan **plan) {
  lcomm_comm *comm = bucket->comm;
  char why[256];
  uint64_t *ends = malloc(bucket->tensor_count * sizeof *ends);
  if (!ends) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for a bucket");
  }
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    ends[i] = bucket->tensors[i]->offset + bucket->tensors[i]->count;
  }
  bool whole = comm->settings.policy.scope == LCOMM_SCOPE_BUCKET;
  lcomm_plan_request request = {.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                                .count = bucket->count,
                                .dtype = bucket->dtype,
                                .op = bucket->op,
                                .place = comm->tensors->location,
                                .error_feedback = true,
                                .exact = exact,
                                .density = density,
                                .segment_ends = whole ? &bucket->count : ends,
                                .segments = whole ? 1 : bucket->tensor_count};
  lcomm_status status = lcomm_plan_create(&request, &comm->settings.policy, &comm->topo, comm->rank,
                                          plan, why, sizeof(why));
  free(ends);
  if (status != LCOMM_OK) {
    return lcomm_fail(comm, status, "no plan can be made for a bucket of %llu elements: %s",
                      (unsigned long long)bucket->count, why);
  }
  return LCOMM_OK;
}

static lcomm_status make_run(lcomm_bucket *bucket, bool exact, double density, lcomm_run **run) {
  lcomm_comm *comm = bucket->comm;
  lcomm_plan *plan = NULL;
  lcomm_status status = make_plan(bucket, exact, density, &plan);
  if (status != LCOMM_OK) {
    return status;
  }
  status = lcomm_run_create(comm, plan, run);
  return status == LCOMM_OK ? LCOMM_OK : lcomm_fail(comm, status, "%s", lcomm_error_thread_text());
}

bool lcomm_bucket_needs_velocity(const lcomm_bucket *bucket, const lcomm_run *run) {
  return bucket->comm->settings.policy.momentum > 0 &&
         !run->plan->stages[LCOMM_STAGE_NET].error_feedback &&
         !lcomm_sum_stays_exact(bucket->dtype, bucket->op);
}

/* -------------------------------------------------------------- starting */

static void end_bucket(lcomm_operation *operation) {
  lcomm_bucket *bucket = operation->owner;
  if (operation->status == LCOMM_OK && operation->run->device) {
    lcomm_bucket_end_device(bucket, operation->run);
  } else if (operation->status == LCOMM_OK) {
    lcomm_bucket_stage_out(bucket, lcomm_bucket_needs_velocity(bucket, operation->run));
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

static lcomm_status out_of_memory(const lcomm_bucket *bucket) {
  return lcomm_fail(bucket->comm, LCOMM_ERR_MEMORY, "out of memory for a bucket of %llu elements",
                    (unsigned long long)bucket->count);
}

static lcomm_status prepare_velocity(lcomm_bucket *bucket, const lcomm_run *run) {
  if (lcomm_bucket_needs_velocity(bucket, run) && !bucket->velocity) {
    bucket->velocity = lcomm_ef_memory_get(bucket->comm->tensors->location, bucket->count);
    return bucket->velocity ? LCOMM_OK : out_of_memory(bucket);
  }
  return LCOMM_OK;
}

static lcomm_status prepare_exact(lcomm_bucket *bucket) {
  lcomm_status status =
      bucket->exact_run ? LCOMM_OK : make_run(bucket, true, 0, &bucket->exact_run);
  return status == LCOMM_OK ? prepare_velocity(bucket, bucket->exact_run) : status;
}

/* The state for the first lossy step; the momentum of exact steps before it
 * goes over into it. */
static lcomm_status make_feedback(lcomm_bucket *bucket) {
  lcomm_comm *comm = bucket->comm;
  const lcomm_plan *plan = bucket->run->plan;
  if (lcomm_bucket_needs_velocity(bucket, bucket->run)) {
    return prepare_velocity(bucket, bucket->run);
  }
  if (lcomm_feedback_create(plan, comm->settings.policy.momentum, &bucket->feedback) != LCOMM_OK) {
    return out_of_memory(bucket);
  }
  if (bucket->velocity && bucket->feedback) {
    int holders = plan->shape.hierarchical ? comm->topo.nodes : comm->size;
    float factor = bucket->op == LCOMM_AVG ? 1.0f / (float)comm->size : 1.0f;
    lcomm_feedback_take_over(bucket->feedback, bucket->velocity, holders, factor);
  }
  lcomm_ef_memory_free(comm->tensors->location, bucket->velocity);
  bucket->velocity = NULL;
  return LCOMM_OK;
}

/* A run for the density of this step; another stage of a density warm-up takes
 * another plan and keeps the feedback. */
static lcomm_status prepare_lossy(lcomm_bucket *bucket) {
  double density =
      lcomm_warmup_density(&bucket->comm->settings.policy, bucket->comm->deferred.step);
  if (bucket->run && !(density < bucket->density || density > bucket->density)) {
    return LCOMM_OK;
  }
  lcomm_run_retire(bucket->comm, bucket->run);
  bucket->run = NULL;
  bucket->density = density;
  lcomm_status status = make_run(bucket, false, density, &bucket->run);
  if (status == LCOMM_OK && !bucket->feedback) {
    status = make_feedback(bucket);
  }
  if (status == LCOMM_OK && !lcomm_feedback_fits(bucket->feedback, bucket->run->plan)) {
    status = lcomm_fail(bucket->comm, LCOMM_ERR_INTERNAL,
                        "the error feedback of a bucket does not fit its plan");
  }
  if (status == LCOMM_OK) {
    bucket->run->feedback = bucket->feedback;
  }
  return status;
}

lcomm_status lcomm_bucket_feedback(lcomm_bucket *bucket, lcomm_feedback_state **feedback) {
  lcomm_plan *plan = NULL;
  *feedback = NULL;
  if (bucket->exact) {
    return LCOMM_OK;
  }
  lcomm_status status = make_plan(bucket, false, 0, &plan);
  if (status == LCOMM_OK) {
    status = lcomm_feedback_create(plan, bucket->comm->settings.policy.momentum, feedback);
  }
  lcomm_plan_destroy(plan);
  return status == LCOMM_OK ? LCOMM_OK : out_of_memory(bucket);
}

lcomm_status lcomm_bucket_holders(const lcomm_bucket *bucket, int *holders) {
  lcomm_plan *plan = NULL;
  lcomm_status status = make_plan(bucket, false, 0, &plan);
  if (status == LCOMM_OK) {
    *holders = plan->shape.hierarchical ? bucket->comm->topo.nodes : bucket->comm->size;
  }
  lcomm_plan_destroy(plan);
  return status;
}

static lcomm_status start_bucket(lcomm_bucket *bucket) {
  lcomm_comm *comm = bucket->comm;
  bool exact = bucket->exact || lcomm_warmup_is_exact(&comm->settings.policy, comm->deferred.step);
  lcomm_status status = exact ? prepare_exact(bucket) : prepare_lossy(bucket);
  if (status != LCOMM_OK) {
    return status;
  }
  lcomm_run *run = exact ? bucket->exact_run : bucket->run;
  if (run->device) {
    status = lcomm_bucket_stage_in_device(bucket, run);
  } else {
    lcomm_bucket_stage_in(bucket);
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
    lcomm_status status = start_bucket(&comm->tensors->buckets[comm->tensors->buckets_started]);
    if (status != LCOMM_OK) {
      return status;
    }
    comm->tensors->buckets_started++;
  }
  return LCOMM_OK;
}

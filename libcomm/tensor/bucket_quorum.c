/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Buckets with quorum=, stale= or algo=servers of the policy: each is summed by vectors of shards,
 * not by a plan. */

#include <math.h>
#include <xxhash.h>

#include "libcomm/call/call.h"
#include "libcomm/engine/backend.h"
#include "libcomm/tensor/bucket.h"

/* ------------------------------------------------------------------- making */

lcomm_status lcomm_quorum_check(lcomm_comm *comm, const lcomm_tensor *tensor,
                                lcomm_memory_location location) {
  if (!comm->deferred.shards) {
    return LCOMM_OK;
  }
  if (lcomm_memory_is_on_device(location) && !lcomm_shards_sum_calls(comm->deferred.shards)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_tensor_add(%s): with stale= or algo=servers tensors are in memory "
                        "of the host; this one is on a device",
                        tensor->name);
  }
  if (lcomm_sum_dtype(tensor->dtype) != LCOMM_FLOAT32) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_tensor_add(%s): with quorum=, stale= or algo=servers tensors are "
                        "float32, float16 or bfloat16; this one is %s. Sum it by lcomm_allreduce",
                        tensor->name, lcomm_dtype_name(tensor->dtype));
  }
  return LCOMM_OK;
}

lcomm_status lcomm_quorum_choose_format(const lcomm_ef *ef, lcomm_format *format) {
  lcomm_plan *plan = NULL;
  *format = lcomm_format_exact(LCOMM_FLOAT32);
  if (ef->exact || ef->comm->topo.nodes == 1) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_ef_make_plan(ef, false, 0, &plan));
  *format = plan->stages[LCOMM_STAGE_NET].format;
  lcomm_plan_destroy(plan);
  return LCOMM_OK;
}

static lcomm_status make_shards(lcomm_bucket *bucket) {
  lcomm_comm *comm = bucket->comm;
  lcomm_shard_request request = {.count = bucket->count,
                                 .op = bucket->op,
                                 .exact_results = lcomm_shards_are_updated(comm->deferred.shards),
                                 .segment_ends = bucket->ef.request.segment_ends,
                                 .segments = bucket->ef.request.segments,
                                 .space = LCOMM_SEQUENCE_SPACE_BUCKETS};
  LCOMM_TRY(lcomm_quorum_choose_format(&bucket->ef, &request.format));
  if (lcomm_shard_lanes_make(comm, &request, &bucket->shards) != LCOMM_OK) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for the pieces of %llu elements",
                      (unsigned long long)bucket->count);
  }
  return bucket->ef.state.feedback ? LCOMM_OK
                                   : lcomm_ef_feedback(&bucket->ef, &bucket->ef.state.feedback);
}

/* No rank contributes before all have the vectors. */
lcomm_status lcomm_buckets_make_shards(lcomm_comm *comm) {
  int32_t made = 1;
  LCOMM_TRY(lcomm_shards_have_servers(comm->deferred.shards) ? lcomm_servers_agree(comm)
                                                             : LCOMM_OK);
  for (size_t i = 0; i < comm->tensors->bucket_count; i++) {
    lcomm_bucket *bucket = &comm->tensors->buckets[i];
    LCOMM_TRY(bucket->shards ? LCOMM_OK : make_shards(bucket));
  }
  lcomm_call call =
      lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, &made, &made, 1, LCOMM_INT32, LCOMM_MAX);
  call.op_kind = LCOMM_OP_KIND_TENSORS;
  return lcomm_tensors_call(comm, &call);
}

/* --------------------------------------------------------------------- steps */

static lcomm_shard_vector *vector_of(const lcomm_bucket *bucket, uint64_t round) {
  const lcomm_shard_staleness *stale = lcomm_shards_stale(bucket->comm->deferred.shards);
  return bucket->shards[lcomm_stale_lane(&stale->rule, round)];
}

lcomm_shard_vector *lcomm_bucket_oldest(const lcomm_bucket *bucket) {
  return vector_of(bucket, bucket->ended);
}

lcomm_shard_vector *lcomm_bucket_newest(const lcomm_bucket *bucket) {
  return vector_of(bucket, bucket->begun - 1);
}

static float *values_of(const lcomm_bucket *bucket) {
  return (float *)(void *)lcomm_bucket_summed(bucket);
}

lcomm_status lcomm_bucket_start_shards(lcomm_bucket *bucket) {
  lcomm_shards *shards = bucket->comm->deferred.shards;
  const lcomm_shard_staleness *stale = lcomm_shards_stale(shards);
  lcomm_shard_vector *vector = vector_of(bucket, bucket->begun++);
  float share = lcomm_stale_share(lcomm_stale_age(&stale->rank));
  bucket->over = stale->rule.steps > 0; /* its result belongs to no step */
  lcomm_shards_set_served(shards, true);
  return lcomm_shard_sum_begin(vector, values_of(bucket), bucket->ef.state.feedback->residual.now,
                               share);
}

/* The results into the tensors, as at the end of an operation. */
static lcomm_status stage_out(lcomm_bucket *bucket) {
  lcomm_run *run = bucket->run;
  run->data.owner = bucket;
  lcomm_run_entry entry = lcomm_run_enter(run);
  lcomm_status status = lcomm_bucket_stage_out(run);
  lcomm_run_leave(run, entry);
  return status;
}

/* With stale= ranks compare what they have taken. */
static void note_result(lcomm_bucket *bucket, const float *values) {
  lcomm_shard_staleness *stale = lcomm_shards_stale(bucket->comm->deferred.shards);
  if (stale->rule.steps > 0) {
    stale->hash = XXH3_64bits_withSeed(values, bucket->count * sizeof *values, stale->hash);
  }
}

lcomm_status lcomm_bucket_end_shards(lcomm_bucket *bucket) {
  lcomm_comm *comm = bucket->comm;
  lcomm_shard_vector *vector = vector_of(bucket, bucket->ended++);
  float *values = values_of(bucket);
  LCOMM_TRY(lcomm_shard_sum_end(vector, values, bucket->ef.state.feedback->residual.now));
  note_result(bucket, values);
  LCOMM_TRY(stage_out(bucket));
  comm->stats.operations++;
  comm->stats.not_finite += bucket->run->not_finite;
  comm->tensors->not_finite.step += bucket->run->not_finite;
  lcomm_ef_end(&bucket->ef, bucket->run);
  bucket->left = 0;
  bucket->over = true;
  return LCOMM_OK;
}

lcomm_status lcomm_buckets_end_shards(lcomm_comm *comm) {
  for (size_t i = 0; i < comm->tensors->buckets_started; i++) {
    lcomm_bucket *bucket = &comm->tensors->buckets[i];
    bool is_here =
        bucket->shards && !bucket->over && lcomm_shard_sum_is_here(lcomm_bucket_oldest(bucket));
    LCOMM_TRY(is_here ? lcomm_bucket_end_shards(bucket) : LCOMM_OK);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_bucket_wait(lcomm_bucket *bucket) {
  if (!bucket->shards || bucket->over) {
    return lcomm_operations_wait(bucket->comm, &bucket->over);
  }
  LCOMM_TRY(lcomm_shard_sum_wait(lcomm_bucket_oldest(bucket), INFINITY));
  return lcomm_bucket_end_shards(bucket);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Buckets, step by step: which of them starts, by which run, and what follows when its operation is
 * over. */

#include <xxhash.h>

#include "libcomm/engine/backend.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/peer_memory.h"
#include "libcomm/engine/tape.h"
#include "libcomm/tensor/bucket.h"

/* What is played needs somebody else to move its messages. */
static lcomm_status take_run(lcomm_bucket *bucket) {
  if (bucket->shards) { /* it sums nothing: its backend stages */
    return lcomm_ef_take_flush_run(&bucket->ef, &bucket->run);
  }
  LCOMM_TRY(lcomm_ef_take_run(&bucket->ef, bucket->comm->deferred.step, &bucket->run));
  if (bucket->run->tape && bucket->comm->size > 1) {
    (void)lcomm_proxy_start(bucket->comm);
  }
  return LCOMM_OK;
}

/* -------------------------------------------------------------------- ends */

/* Whoever waits for a bucket that failed finds that the communicator has. */
static void end_sum(lcomm_bucket *bucket, const lcomm_operation *operation) {
  bucket->left--;
  bucket->over = bucket->left == 0 || operation->status != LCOMM_OK;
}

static void end_bucket(lcomm_operation *operation) {
  lcomm_bucket *bucket = operation->owner;
  if (operation->status == LCOMM_OK) {
    bucket->comm->tensors->not_finite.step += operation->not_finite;
    lcomm_ef_end(&bucket->ef, operation->run);
  }
  end_sum(bucket, operation);
  lcomm_auto_watch_end(bucket->comm);
  lcomm_operation_release(bucket->comm, operation);
}

/* The first of two sums is over: the second starts, and what had to wait for that. A failure is the
 * communicator's, and found by whoever makes progress. */
static void end_first(lcomm_operation *operation) {
  lcomm_bucket *bucket = operation->owner;
  bool fine = operation->status == LCOMM_OK;
  bucket->under_way = false;
  end_sum(bucket, operation);
  bucket->run = bucket->ef.lowrank.right.run;
  lcomm_auto_watch_end(bucket->comm);
  lcomm_operation_release(bucket->comm, operation);
  (void)(fine ? lcomm_buckets_start(bucket->comm) : LCOMM_OK);
}

/* The same where the second is in the lanes behind it, or about to be. */
static void end_first_played(lcomm_operation *operation) {
  lcomm_bucket *bucket = operation->owner;
  end_sum(bucket, operation);
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

static void (*end_of(const lcomm_bucket *bucket))(lcomm_operation *) {
  if (!lcomm_ef_lowrank_is_first(&bucket->ef, bucket->run)) {
    return end_bucket;
  }
  return bucket->run->tape ? end_first_played : end_first;
}

/* Its vector, or its factors, are there. */
static lcomm_status start_sum(lcomm_bucket *bucket) {
  lcomm_comm *comm = bucket->comm;
  lcomm_operation *operation = NULL;
  bool first = lcomm_ef_lowrank_is_first(&bucket->ef, bucket->run);
  bool second = lcomm_ef_lowrank_is_second(&bucket->ef, bucket->run);
  if (bucket->run->tape) {
    lcomm_peer_memory_open(bucket->run);
  }
  bucket->under_way = first && !bucket->run->tape;
  lcomm_operation_data data = {.vector = lcomm_bucket_summed(bucket),
                               .op = bucket->op,
                               .before = 1,
                               .after = 1,
                               .factors = hash_factors(bucket),
                               .op_kind = LCOMM_OP_KIND_BUCKET,
                               .factor = lcomm_ef_lowrank_factor(&bucket->ef, bucket->run),
                               .name = second ? bucket->second_name : bucket->name,
                               .stage_out = lcomm_bucket_stage_out,
                               .owner = bucket};
  lcomm_status status = lcomm_operation_start(comm, bucket->run, &data, &operation);
  if (operation) {
    operation->owner = bucket;
    operation->awaited = &bucket->over;
    operation->end = end_of(bucket);
    lcomm_auto_watch_begin(comm);
  }
  return status == LCOMM_OK && bucket->run->tape ? play(bucket) : status;
}

/* The first of two is in the lanes, which need no call for what follows it there. */
static lcomm_status start_second_played(lcomm_bucket *bucket) {
  lcomm_run_entry entry = lcomm_run_enter(bucket->run);
  lcomm_status status = lcomm_tape_chain(bucket->run);
  lcomm_run_leave(bucket->run, entry);
  LCOMM_TRY(status);
  bucket->run = bucket->ef.lowrank.right.run;
  return start_sum(bucket);
}

static lcomm_status start_bucket(lcomm_bucket *bucket) {
  bool second = lcomm_ef_lowrank_is_second(&bucket->ef, bucket->run);
  bool staged = second || lcomm_step_clips_globally(bucket->comm);
  LCOMM_TRY(staged ? LCOMM_OK : lcomm_bucket_stage_in(bucket));
  LCOMM_TRY(second ? LCOMM_OK : lcomm_bucket_amend(bucket));
  if (bucket->shards) {
    return lcomm_bucket_start_shards(bucket);
  }
  bool chains = lcomm_ef_lowrank_is_first(&bucket->ef, bucket->run) && bucket->run->tape;
  LCOMM_TRY(start_sum(bucket));
  return chains ? start_second_played(bucket) : LCOMM_OK;
}

static unsigned sums_of(const lcomm_bucket *bucket) {
  return lcomm_ef_lowrank_is_first(&bucket->ef, bucket->run) ? 2 : 1;
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
    tensors->buckets[i].over = false;
    tensors->buckets[i].left = sums_of(&tensors->buckets[i]);
  }
  for (size_t i = 0; together && i < tensors->bucket_count; i++) {
    LCOMM_TRY(lcomm_bucket_stage_in(&tensors->buckets[i]));
  }
  return LCOMM_OK;
}

/* Is it a bucket's turn whose tensors are ready, or whose first sum is over? */
static bool may_start(const lcomm_comm *comm) {
  const lcomm_tensor_set *tensors = comm->tensors;
  const lcomm_bucket *next = tensors->buckets + tensors->buckets_started;
  return lcomm_tensors_are_planned(comm) && tensors->buckets_started < tensors->bucket_count &&
         is_ready(next) && !next->under_way;
}

static lcomm_status start_all(lcomm_comm *comm) {
  lcomm_tensor_set *tensors = comm->tensors;
  bool begun = true;
  LCOMM_TRY(!tensors->begun ? begin_step(comm, &begun) : LCOMM_OK);
  tensors->begun = begun;
  while (begun && may_start(comm)) {
    lcomm_bucket *next = &tensors->buckets[tensors->buckets_started];
    LCOMM_TRY(start_bucket(next));
    tensors->buckets_started += !next->under_way;
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

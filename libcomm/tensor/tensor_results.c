/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Results that are handed out after their step: with stale= of the policy one or more steps later,
 * each once, in the order of the steps. The rule is shards/staleness.h. */

#include <math.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/entry.h"
#include "libcomm/tensor/bucket.h"
#include "libcomm/tensor/tensor_sync.h"

bool lcomm_results_are_under_way(const lcomm_comm *comm) {
  const lcomm_shard_staleness *stale = lcomm_shards_stale_of(comm);
  return stale && stale->rank.taken < stale->rank.contributed;
}

/* ------------------------------------------------------------------ waiting */

static lcomm_status wait_for_oldest(lcomm_comm *comm) {
  for (size_t i = 0; i < comm->tensors->bucket_count; i++) {
    LCOMM_TRY(lcomm_shard_sum_wait(lcomm_bucket_oldest(&comm->tensors->buckets[i]), INFINITY));
  }
  return LCOMM_OK;
}

static lcomm_status wait_for_newest(lcomm_comm *comm, double until_s) {
  for (size_t i = 0; i < comm->tensors->bucket_count; i++) {
    LCOMM_TRY(lcomm_shard_sum_wait(lcomm_bucket_newest(&comm->tensors->buckets[i]), until_s));
  }
  return LCOMM_OK;
}

static bool oldest_is_here(const lcomm_comm *comm) {
  bool is_here = lcomm_results_are_under_way(comm);
  for (size_t i = 0; is_here && i < comm->tensors->bucket_count; i++) {
    is_here = lcomm_shard_sum_is_here(lcomm_bucket_oldest(&comm->tensors->buckets[i]));
  }
  return is_here;
}

lcomm_status lcomm_results_await(lcomm_comm *comm) {
  lcomm_shard_staleness *stale = lcomm_shards_stale_of(comm);
  if (!stale) {
    return LCOMM_OK;
  }
  stale->age = lcomm_stale_age(&stale->rank);
  stale->age_most = stale->age > stale->age_most ? stale->age : stale->age_most;
  stale->age_sum += stale->age;
  stale->rank.contributed++;
  double late_s = comm->settings.policy.quorum.late_ms / 1000.0;
  LCOMM_TRY(wait_for_newest(comm, lcomm_clock_s() + late_s));
  return lcomm_stale_must_wait(&stale->rule, &stale->rank) ? wait_for_oldest(comm) : LCOMM_OK;
}

lcomm_status lcomm_results_finish(lcomm_comm *comm) {
  return lcomm_results_are_under_way(comm) ? wait_for_newest(comm, INFINITY) : LCOMM_OK;
}

/* -------------------------------------------------------------- handing out */

/* A program may have taken buffers away meanwhile. */
static lcomm_status check_buffers(lcomm_comm *comm) {
  for (size_t i = 0; i < comm->tensors->count; i++) {
    const lcomm_tensor *it = comm->tensors->list[i];
    if (!it->frozen && !it->data && it->count > 0) {
      return lcomm_refuse(
          comm, LCOMM_ERR_STATE,
          "a result cannot be handed out: tensor %s has no buffer; give it one with "
          "lcomm_tensor_data_set first",
          it->name);
    }
  }
  return LCOMM_OK;
}

/* In the same order on all ranks, as they compare a hash of all. */
static lcomm_status hand_out(lcomm_comm *comm, lcomm_shard_staleness *stale) {
  lcomm_tensor_set *tensors = comm->tensors;
  uint64_t beyond = UINT64_MAX;
  for (size_t i = 0; i < tensors->bucket_count; i++) {
    lcomm_bucket *bucket = &tensors->buckets[i];
    uint64_t of_bucket = lcomm_shard_closed_beyond(lcomm_bucket_oldest(bucket));
    beyond = of_bucket < beyond ? of_bucket : beyond;
    LCOMM_TRY(lcomm_bucket_end_shards(bucket));
  }
  tensors->not_finite = (lcomm_not_finite){.last = tensors->not_finite.step};
  stale->closed =
      lcomm_stale_closed(&stale->rule, stale->rank.taken, beyond == UINT64_MAX ? 0 : beyond);
  stale->rank.taken++;
  atomic_store(&comm->deferred.open, lcomm_results_are_under_way(comm));
  return LCOMM_OK;
}

static lcomm_status check_between(lcomm_comm *comm, const char *call) {
  LCOMM_TRY(lcomm_control_receive(comm));
  bool is_open = comm->tensors->begun;
  for (size_t i = 0; !is_open && i < comm->tensors->count; i++) {
    is_open = atomic_load(&comm->tensors->list[i]->ready);
  }
  if (is_open) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "%s: a step is in flight; call it after lcomm_tensors_wait", call);
  }
  return lcomm_results_are_under_way(comm) ? check_buffers(comm) : LCOMM_OK;
}

/* Without stale= the result of the last step is in the tensors already. */
static lcomm_status hand_out_next(lcomm_comm *comm, bool is_here, int *there) {
  lcomm_shard_staleness *stale = lcomm_shards_stale_of(comm);
  if (!stale) {
    *there = atomic_exchange(&comm->tensors->undrawn, false);
    return LCOMM_OK;
  }
  *there = is_here;
  atomic_store(&comm->tensors->undrawn, is_here);
  return is_here ? hand_out(comm, stale) : LCOMM_OK;
}

static lcomm_status next(lcomm_comm *comm, int *there) {
  LCOMM_TRY(check_between(comm, "lcomm_tensors_next"));
  return hand_out_next(comm, oldest_is_here(comm), there);
}

lcomm_status lcomm_tensors_next(lcomm_comm *comm, int *there) {
  if (!comm || !there) {
    return lcomm_refuse_null(comm, "lcomm_tensors_next", "there");
  }
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = next(comm, there);
  lcomm_exit(comm);
  return status;
}

static lcomm_status sync(lcomm_comm *comm, int *there) {
  bool is_under_way = lcomm_results_are_under_way(comm);
  LCOMM_TRY(check_between(comm, "lcomm_tensors_sync"));
  LCOMM_TRY(is_under_way ? wait_for_oldest(comm) : LCOMM_OK);
  LCOMM_TRY(hand_out_next(comm, is_under_way, there));
  if (*there) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_servers_meet(comm));
  return lcomm_sync_make(comm, LCOMM_SYNC_COMPARES);
}

lcomm_status lcomm_tensors_sync(lcomm_comm *comm, int *there) {
  if (!comm || !there) {
    return lcomm_refuse_null(comm, "lcomm_tensors_sync", "there");
  }
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = sync(comm, there);
  lcomm_exit(comm);
  return status;
}

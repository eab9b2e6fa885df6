/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The life of the guard: its samples are made with the buckets. */

#include <stdlib.h>

#include "libcomm/plan/eligibility.h"
#include "libcomm/plan/milder.h"
#include "libcomm/plan/policy_match.h"
#include "libcomm/tensor/bucket.h"

/* ---------------------------------------------------------------- making */

lcomm_codec_spec lcomm_guard_policy_codec(const lcomm_ef *ef) {
  const lcomm_comm *comm = ef->comm;
  const lcomm_policy *policy = &comm->settings.policy;
  uint64_t named = lcomm_match_named(policy, ""); /* as its plans are made */
  lcomm_eligibility it = lcomm_eligibility_begin(&ef->request, policy, comm->size, named);
  return *lcomm_farthest_codec(&it.net, &policy->node, comm->topo.nodes);
}

lcomm_codec_spec lcomm_guard_codec(const lcomm_ef *ef, unsigned rungs) {
  lcomm_codec_spec choice, first = lcomm_guard_policy_codec(ef);
  (void)lcomm_milder_codec(&first, rungs, ef->comm->settings.policy.momentum > 0, &choice);
  return choice;
}

/* Tensors that are guarded, their elements, and what each element takes. */
typedef struct extent {
  size_t tensors;
  uint64_t elements;
} extent;

static bool is_guarded(const lcomm_bucket *bucket) {
  lcomm_codec_spec codec = lcomm_guard_policy_codec(&bucket->ef);
  return !bucket->ef.exact && bucket->count > 0 && !lcomm_codec_spec_is_exact(&codec);
}

static extent measure(const lcomm_comm *comm) {
  extent all = {0, 0};
  for (size_t i = 0; i < comm->tensors->bucket_count; i++) {
    const lcomm_bucket *bucket = &comm->tensors->buckets[i];
    all.tensors += is_guarded(bucket) ? bucket->tensor_count : 0;
    all.elements += is_guarded(bucket) ? bucket->count : 0;
  }
  return all;
}

void lcomm_guard_share_out(lcomm_guard_share *share, uint64_t count, uint64_t all_count,
                           size_t all) {
  share->has_residual = lcomm_guard_codec(share->ef, share->guarded->rungs).error_feedback;
  unsigned lanes = lcomm_guard_lanes(share);
  share->sample =
      lcomm_guard_sample_of(count, lcomm_guard_sample_count(count, lanes, all_count, all));
}

static void add_share(lcomm_guard *guard, lcomm_tensor *tensor, const extent *all) {
  lcomm_guard_share *share = &guard->shares[guard->share_count];
  *share = (lcomm_guard_share){.guarded = &tensor->guarded,
                               .ef = &tensor->bucket->ef,
                               .offset = tensor->offset,
                               .number = (uint32_t)guard->share_count};
  lcomm_guard_share_out(share, tensor->count, all->elements, all->tensors);
  tensor->guarded.share = share;
  tensor->guarded.figures.tensor = tensor->name;
  guard->rows[guard->share_count++] = &tensor->guarded.figures;
}

static void add_shares(lcomm_guard *guard, const extent *all) {
  for (size_t i = 0; i < guard->comm->tensors->bucket_count; i++) {
    const lcomm_bucket *bucket = &guard->comm->tensors->buckets[i];
    for (size_t j = 0; is_guarded(bucket) && j < bucket->tensor_count; j++) {
      add_share(guard, bucket->tensors[j], all);
    }
  }
}

lcomm_status lcomm_guard_complete(lcomm_guard *guard) {
  lcomm_run *run = NULL;
  guard->ef = (lcomm_ef){.comm = guard->comm,
                         .request = {.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                                     .dtype = LCOMM_FLOAT32,
                                     .op = LCOMM_SUM,
                                     .error_feedback = true},
                         .exact = true,
                         .background = guard->shares[0].ef->background};
  if (!lcomm_guard_place(guard)) {
    return LCOMM_ERR_MEMORY;
  }
  guard->ef.result = lcomm_span_whole(0, guard->ef.request.count);
  return lcomm_ef_take_run(&guard->ef, 0, &run);
}

static lcomm_status make(lcomm_guard *guard, const extent *all) {
  guard->shares = calloc(all->tensors, sizeof *guard->shares);
  guard->rows = calloc(all->tensors, sizeof *guard->rows);
  if (!guard->shares || !guard->rows) {
    return LCOMM_ERR_MEMORY;
  }
  add_shares(guard, all);
  return lcomm_guard_complete(guard);
}

static bool is_wanted(const lcomm_comm *comm, const extent *all) {
  return comm->settings.policy.guard.steps > 0 && comm->size > 1 && all->tensors > 0;
}

lcomm_status lcomm_guard_plan(lcomm_comm *comm) {
  extent all = measure(comm);
  lcomm_guard_free(comm);
  if (!is_wanted(comm, &all)) {
    return LCOMM_OK;
  }
  lcomm_guard *guard = calloc(1, sizeof *guard);
  if (!guard) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for the guard");
  }
  guard->comm = comm;
  guard->location = comm->tensors->location;
  comm->tensors->guard = guard;
  lcomm_status status = make(guard, &all);
  if (status == LCOMM_ERR_MEMORY) {
    return lcomm_fail(comm, status, "out of memory for the guard of %zu tensors", all.tensors);
  }
  comm->observers.summary.guarded = guard->rows;
  comm->observers.summary.guarded_count = guard->share_count;
  return status;
}

/* -------------------------------------------------------------- freeing */

void lcomm_guard_free(lcomm_comm *comm) {
  lcomm_guard *guard = comm->tensors->guard;
  if (!guard) {
    return;
  }
  comm->observers.summary.guarded = NULL;
  comm->observers.summary.guarded_count = 0;
  for (size_t i = 0; i < guard->share_count; i++) {
    guard->shares[i].guarded->share = NULL;
  }
  lcomm_guard_free_memory(guard);
  free(guard->shares);
  free(guard->rows);
  free(guard);
  comm->tensors->guard = NULL;
}

void lcomm_guarded_forget(lcomm_guarded *guarded) {
  guarded->rungs = 0;
  guarded->good = guarded->patience = 0;
  guarded->came_back = false;
}

void lcomm_guard_forget(lcomm_comm *comm) {
  for (size_t i = 0; i < comm->tensors->count; i++) {
    lcomm_guarded_forget(&comm->tensors->list[i]->guarded);
  }
}

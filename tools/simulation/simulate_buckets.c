/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Buckets of a step: which tensors travel together, as tensor/bucket.c of the library groups them.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/plan/eligibility.h"
#include "libcomm/plan/policy_match.h"
#include "tools/simulation/simulate_lowrank.h"

typedef struct grouping {
  const simulate_world_request *request;
  uint64_t named; /* the policy's rules for a communicator without a name */
  simulate_bucket *buckets;
  uint32_t count;
} grouping;

static lcomm_named_data policy_of(const grouping *it, const simulate_tensor *tensor) {
  lcomm_match_call call = {.kind = LCOMM_CALL_ALLREDUCE,
                           .count = tensor->count,
                           .dtype = it->request->dtype,
                           .op = LCOMM_SUM,
                           .ranks = it->request->topo->size,
                           .name = tensor->name,
                           .rows = tensor->rows,
                           .columns = tensor->columns};
  return lcomm_eligibility_of_name(it->request->policy, it->named, &call);
}

static bool is_of_kind(const simulate_bucket *bucket, const lcomm_named_data *policy) {
  return bucket->exact == policy->exact &&
         (policy->exact || lcomm_codec_spec_equal(&bucket->net, &policy->net));
}

/* The newest of its kind, if there is room. */
static simulate_bucket *find_open(const grouping *it, const simulate_tensor *tensor,
                                  const lcomm_named_data *policy) {
  for (uint32_t i = it->count; i > 0; i--) {
    simulate_bucket *bucket = &it->buckets[i - 1];
    if (is_of_kind(bucket, policy)) {
      uint64_t bytes = (bucket->count + tensor->count) * lcomm_dtype_size(it->request->dtype);
      return bytes <= it->request->policy->bucket_bytes ? bucket : NULL;
    }
  }
  return NULL;
}

static bool add_end(simulate_bucket *bucket) {
  size_t room = bucket->segments;
  if ((room & (room - 1)) == 0) {
    size_t larger = room > 0 ? 2 * room : 1;
    uint64_t *ends = realloc(bucket->segment_ends, larger * sizeof *ends);
    if (!ends) {
      return false;
    }
    bucket->segment_ends = ends;
  }
  bucket->segment_ends[bucket->segments++] = bucket->count;
  return true;
}

static bool add_tensor(grouping *it, size_t index) {
  const simulate_tensor *tensor = &it->request->workload->tensors[index];
  lcomm_named_data policy = {0};
  simulate_bucket *bucket = NULL;
  if (!it->request->calls) {
    policy = policy_of(it, tensor);
    bucket = find_open(it, tensor, &policy);
  }
  if (!bucket) {
    bucket = &it->buckets[it->count++];
    bucket->exact = policy.exact;
    bucket->net = policy.net;
  }
  bucket->count += tensor->count;
  lcomm_lowrank_sizes_add(&bucket->matrices, tensor->rows, tensor->columns);
  bucket->matrices.count = bucket->count; /* a tensor may be several */
  bucket->last_tensor = index;
  return add_end(bucket);
}

static bool has_shape_of(const simulate_bucket *a, const simulate_bucket *b) {
  return a->count == b->count && a->exact == b->exact && a->segments == b->segments &&
         a->sum == b->sum && a->matrices.rows == b->matrices.rows &&
         a->matrices.columns == b->matrices.columns && lcomm_codec_spec_equal(&a->net, &b->net) &&
         memcmp(a->segment_ends, b->segment_ends, a->segments * sizeof *a->segment_ends) == 0;
}

/* Buckets start in their order, each when all of its tensors are there. first: scratch, the first
 * bucket of each shape. */
static void number_shapes(grouping *it, uint32_t *first) {
  uint32_t shapes = 0;
  size_t last = 0;
  for (uint32_t i = 0; i < it->count; i++) {
    simulate_bucket *bucket = &it->buckets[i];
    bucket->shape = 0;
    while (bucket->shape < shapes && !has_shape_of(bucket, &it->buckets[first[bucket->shape]])) {
      bucket->shape++;
    }
    if (bucket->shape == shapes) {
      first[shapes++] = i;
    }
    last = bucket->last_tensor > last ? bucket->last_tensor : last;
    bucket->last_tensor = last;
  }
}

lcomm_plan_request simulate_bucket_request(const simulate_world_request *request,
                                           const simulate_bucket *bucket) {
  lcomm_plan_request it = {
      .collective = LCOMM_COLLECTIVE_ALLREDUCE, .count = bucket->count, .dtype = request->dtype};
  if (bucket->sum != SIMULATE_SUM_WHOLE) {
    return simulate_lowrank_request(&it, bucket);
  }
  if (!request->calls) {
    it.error_feedback = true;
    it.exact = bucket->exact;
    it.net = bucket->net;
    it.segment_ends = bucket->segment_ends;
    it.segments = bucket->segments;
  }
  return it;
}

simulate_bucket *simulate_buckets_make(const simulate_world_request *request, uint32_t *count,
                                       char *why) {
  grouping it = {.request = request, .named = lcomm_match_named(request->policy, "")};
  it.buckets = calloc(2 * request->workload->count, sizeof *it.buckets); /* with second sums */
  uint32_t *first = calloc(2 * request->workload->count, sizeof *first);
  bool good = it.buckets && first;
  for (size_t i = 0; good && i < request->workload->count; i++) {
    good = add_tensor(&it, i);
  }
  if (!good) {
    snprintf(why, SIMULATE_WHY_MAX, "out of memory for %zu tensors", request->workload->count);
    simulate_buckets_free(it.buckets, it.count);
    free(first);
    return NULL;
  }
  if (!simulate_lowrank_split(request, it.buckets, &it.count, why)) {
    simulate_buckets_free(it.buckets, it.count);
    free(first);
    return NULL;
  }
  number_shapes(&it, first);
  free(first);
  *count = it.count;
  return it.buckets;
}

void simulate_buckets_free(simulate_bucket *buckets, uint32_t count) {
  for (uint32_t i = 0; buckets && i < count; i++) {
    free(buckets[i].segment_ends);
  }
  free(buckets);
}

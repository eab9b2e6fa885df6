/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Buckets: how tensors are grouped. */

#include "libcomm/tensor/bucket.h"
#include "libcomm/engine/handles.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/tensor/tensor_carry.h"
#include "libcomm/tensor/tensor_mirror.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- making */

/* Buckets on their way: those of the communicator are there until these are whole. */
typedef struct grouping {
  lcomm_comm *comm;
  lcomm_bucket *buckets; /* bucket_count of them */
  size_t bucket_count;
  bool *is_new; /* of each bucket: its tensors were not together before */
} grouping;

static bool has_room(const lcomm_comm *comm, const lcomm_bucket *bucket,
                     const lcomm_tensor *tensor) {
  uint64_t bytes = (bucket->count + tensor->count) * lcomm_dtype_size(bucket->dtype);
  return bytes <= comm->settings.policy.bucket_bytes;
}

/* Do its tensors travel in the same way? */
static bool is_of_kind(const lcomm_bucket *bucket, const lcomm_tensor *tensor,
                       const lcomm_named_data *policy) {
  return bucket->dtype == tensor->dtype && bucket->op == tensor->op &&
         bucket->rungs == tensor->guarded.rungs && bucket->ef.exact == policy->exact &&
         (policy->exact || lcomm_codec_spec_equal(&bucket->ef.request.net, &policy->net));
}

/* The open bucket of this kind, NULL if there is none with room. Only the
 * newest of a kind is open, so tensors keep their order. */
static lcomm_bucket *find_open(const grouping *it, const lcomm_tensor *tensor,
                               const lcomm_named_data *policy) {
  for (size_t i = it->bucket_count; i > 0; i--) {
    lcomm_bucket *bucket = &it->buckets[i - 1];
    if (is_of_kind(bucket, tensor, policy)) {
      return has_room(it->comm, bucket, tensor) ? bucket : NULL;
    }
  }
  return NULL;
}

static lcomm_status add_to_bucket(grouping *it, size_t index) {
  lcomm_tensor *tensor = it->comm->tensors->list[index];
  lcomm_named_data policy = lcomm_tensor_policy(tensor);
  lcomm_bucket *bucket = find_open(it, tensor, &policy);
  if (!bucket) {
    bucket = &it->buckets[it->bucket_count];
    bucket->tensors = malloc(it->comm->tensors->count * sizeof(lcomm_tensor *));
    if (!bucket->tensors) {
      return LCOMM_ERR_MEMORY;
    }
    bucket->comm = it->comm;
    bucket->dtype = tensor->dtype;
    bucket->element_size = lcomm_dtype_size(lcomm_sum_dtype(tensor->dtype));
    bucket->op = tensor->op;
    bucket->ef.exact = policy.exact;
    bucket->ef.request.net = policy.net;
    bucket->rungs = tensor->guarded.rungs;
    it->bucket_count++;
  }
  bucket->count += tensor->count;
  bucket->tensors[bucket->tensor_count++] = tensor;
  bucket->last_tensor = index;
  return LCOMM_OK;
}

static int by_last_tensor(const void *a, const void *b) {
  size_t left = ((const lcomm_bucket *)a)->last_tensor;
  size_t right = ((const lcomm_bucket *)b)->last_tensor;
  return (left > right) - (left < right);
}

static lcomm_status group(grouping *it) {
  size_t room = it->comm->tensors->count + 1;
  it->buckets = calloc(room, sizeof *it->buckets);
  it->is_new = calloc(room, sizeof *it->is_new);
  lcomm_status status = it->buckets && it->is_new ? LCOMM_OK : LCOMM_ERR_MEMORY;
  for (size_t i = 0; status == LCOMM_OK && i < it->comm->tensors->count; i++) {
    status = it->comm->tensors->list[i]->planned ? add_to_bucket(it, i) : LCOMM_OK;
  }
  if (status == LCOMM_OK) {
    qsort(it->buckets, it->bucket_count, sizeof *it->buckets, by_last_tensor);
  }
  return status;
}

/* A lone tensor is worked on where it is, unless its elements are converted. */
static bool works_in_place(const lcomm_bucket *bucket) {
  return bucket->tensor_count == 1 && lcomm_sum_dtype(bucket->dtype) == bucket->dtype;
}

/* On the host, where local peers can read it without a copy. */
static lcomm_status make_vector(lcomm_bucket *bucket) {
  size_t size = (bucket->count + 1) * bucket->element_size;
  if (works_in_place(bucket)) {
    return LCOMM_OK;
  }
  bucket->vector =
      lcomm_memory_is_on_device(bucket->comm->tensors->location)
          ? lcomm_device_vector(bucket->comm, bucket->comm->tensors->location.device, size)
          : lcomm_links_memory_get(&bucket->comm->links, size);
  return bucket->vector ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

/* A long name is cut, never inside a character, and never what follows it. */
static void write_name(const char *name, const char *more, char text[LCOMM_TRACE_NAME_MAX]) {
  size_t length = strlen(name), room = LCOMM_TRACE_NAME_MAX - 1 - strlen(more);
  if (length > room) {
    for (length = room; length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80;) {
      length--;
    }
  }
  snprintf(text, LCOMM_TRACE_NAME_MAX, "%.*s%s", (int)length, name, more);
}

static void name_bucket(lcomm_bucket *bucket) {
  char more[32] = "", second[48];
  if (bucket->tensor_count > 1) {
    snprintf(more, sizeof(more), " and %zu more", bucket->tensor_count - 1);
  }
  snprintf(second, sizeof(second), "%s, second sum", more);
  write_name(bucket->tensors[0]->name, more, bucket->name);
  write_name(bucket->tensors[0]->name, second, bucket->second_name);
}

/* -------------------------------------------------------------- freeing */

/* A run that was given up may still send from the vector; it keeps it then. */
static void free_bucket(lcomm_bucket *bucket) {
  lcomm_run *runs[2] = {bucket->ef.run, bucket->ef.exact_run};
  for (int i = 0; i < 2; i++) {
    if (runs[i] && runs[i]->messages.abandoned) {
      runs[i]->memory.own_vector = bucket->vector;
      bucket->vector = NULL;
    }
  }
  lcomm_shard_lanes_free(bucket->comm, bucket->shards);
  lcomm_ef_free(&bucket->ef);
  if (lcomm_memory_is_on_device(bucket->comm->tensors->location)) {
    lcomm_device_vector_free(bucket->comm, bucket->vector);
  } else {
    lcomm_links_memory_free(&bucket->comm->links, bucket->vector);
  }
  free(bucket->ends);
  free(bucket->tensors);
}

lcomm_status lcomm_tensor_set_make(lcomm_comm *comm) {
  comm->deferred.start = lcomm_buckets_start;
  comm->tensors = calloc(1, sizeof *comm->tensors);
  return comm->tensors ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

void lcomm_tensor_set_free(lcomm_comm *comm) {
  if (!comm->tensors) {
    return;
  }
  lcomm_guard_free(comm);
  lcomm_carry_release(comm);
  for (size_t i = 0; i < comm->tensors->bucket_count; i++) {
    free_bucket(&comm->tensors->buckets[i]);
  }
  lcomm_tensor_mirrors_free(comm);
  for (size_t i = 0; i < comm->tensors->count; i++) {
    if (comm->tensors->list[i]->event) {
      (void)lcomm_device_get(NULL)->event.destroy(comm->tensors->list[i]->event);
    }
    lcomm_handle_remove(comm->tensors->list[i]);
    lcomm_tensor_state_free(comm->tensors->list[i]);
    free(comm->tensors->list[i]);
  }
  free(comm->tensors->buckets);
  free(comm->tensors->list);
  free(comm->tensors);
  comm->tensors = NULL;
}

/* -------------------------------------------------------------- planning */

/* The state of its tensors first. */
static lcomm_status dissolve(lcomm_bucket *bucket) {
  lcomm_status status = LCOMM_OK;
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    if (status == LCOMM_OK) {
      status = lcomm_tensor_state_take(bucket->tensors[i]);
    }
    bucket->tensors[i]->bucket = NULL;
  }
  free_bucket(bucket);
  return status;
}

lcomm_status lcomm_buckets_dissolve(lcomm_comm *comm) {
  lcomm_status status = LCOMM_OK;
  for (size_t i = 0; i < comm->tensors->bucket_count; i++) {
    if (comm->tensors->buckets[i].tensors) {
      status = lcomm_first_failure(status, dissolve(&comm->tensors->buckets[i]));
    }
  }
  free(comm->tensors->buckets);
  comm->tensors->buckets = NULL;
  comm->tensors->begun = false;
  comm->tensors->bucket_count = comm->tensors->buckets_started = 0;
  if (status != LCOMM_OK) {
    return lcomm_fail(comm, status, "out of memory for the state of %zu tensors",
                      comm->tensors->count);
  }
  return LCOMM_OK;
}

static bool same_tensors(const lcomm_bucket *a, const lcomm_bucket *b) {
  return a->ef.exact == b->ef.exact && a->rungs == b->rungs && a->tensor_count == b->tensor_count &&
         memcmp(a->tensors, b->tensors, a->tensor_count * sizeof(lcomm_tensor *)) == 0;
}

/* Buckets that stay as they are move over. */
static void keep_same(grouping *it) {
  for (size_t i = 0; i < it->bucket_count; i++) {
    lcomm_bucket *now = &it->buckets[i], *before = now->tensors[0]->bucket;
    it->is_new[i] = !before || !before->tensors || !same_tensors(now, before);
    if (!it->is_new[i]) {
      free(now->tensors);
      *now = *before;
      before->tensors = NULL;
    }
  }
}

/* Its plans and what the policy asks of them. What is never compressed (minima, integers) has no
 * momentum. */
static lcomm_status make_ef(lcomm_bucket *bucket) {
  lcomm_comm *comm = bucket->comm;
  const lcomm_policy *policy = &comm->settings.policy;
  bool whole = policy->scope == LCOMM_SCOPE_BUCKET, exact = bucket->ef.exact;
  lcomm_codec_spec net = bucket->ef.request.net;
  bool clips = !LCOMM_DTYPE_IS_WHOLE(bucket->dtype);
  bucket->ends = malloc(bucket->tensor_count * sizeof *bucket->ends);
  for (size_t i = 0; bucket->ends && i < bucket->tensor_count; i++) {
    bucket->ends[i] = bucket->tensors[i]->offset + bucket->tensors[i]->count;
  }
  bucket->ef = (lcomm_ef){
      .comm = comm,
      .request = {.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                  .count = bucket->count,
                  .dtype = bucket->dtype,
                  .op = bucket->op,
                  .location = comm->tensors->location,
                  .error_feedback = true,
                  .net = net,
                  .segment_ends = bucket->ends + (whole ? bucket->tensor_count - 1 : 0),
                  .segments = whole ? 1 : bucket->tensor_count},
      .result = lcomm_span_whole(0, bucket->count),
      .momentum = lcomm_sum_stays_exact(bucket->dtype, bucket->op) ? 0 : policy->momentum,
      .beta1 = lcomm_sum_stays_exact(bucket->dtype, bucket->op) ? 0 : policy->adam.beta1,
      .clip = clips ? policy->clip.norm / sqrt((double)comm->size) : 0,
      .exact = exact,
      .keeps_all = comm->deferred.shards != NULL,
      .undo = policy->undo,
      .background = true};
  if (bucket->rungs > 0) {
    bucket->ef.milder = lcomm_guard_codec(&bucket->ef, bucket->rungs);
  }
  return bucket->ends ? lcomm_bucket_make_lowrank(bucket) : LCOMM_ERR_MEMORY;
}

static lcomm_status complete(lcomm_bucket *bucket, bool is_new) {
  uint64_t offset = 0;
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    bucket->tensors[i]->bucket = bucket;
    bucket->tensors[i]->offset = offset;
    offset += bucket->tensors[i]->count;
  }
  name_bucket(bucket);
  if (!is_new) {
    return LCOMM_OK;
  }
  lcomm_status status = make_vector(bucket);
  return lcomm_first_failure(status, make_ef(bucket));
}

static lcomm_status replace(grouping *it) {
  lcomm_comm *comm = it->comm;
  lcomm_status status = group(it);
  if (status != LCOMM_OK) {
    for (size_t i = 0; i < it->bucket_count; i++) {
      free(it->buckets[i].tensors);
    }
    free(it->buckets);
    return lcomm_fail(comm, status, "out of memory for %zu tensors", comm->tensors->count);
  }
  keep_same(it);
  status = lcomm_buckets_dissolve(comm);
  comm->tensors->buckets = it->buckets;
  comm->tensors->bucket_count = it->bucket_count;
  comm->deferred.for_others = !lcomm_memory_is_on_device(comm->tensors->location);
  for (size_t i = 0; i < comm->tensors->bucket_count; i++) {
    status = lcomm_first_failure(status, complete(&comm->tensors->buckets[i], it->is_new[i]));
  }
  if (status != LCOMM_OK) {
    return lcomm_fail(comm, status, "out of memory for %zu tensors", comm->tensors->count);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_buckets_plan(lcomm_comm *comm) {
  grouping it = {.comm = comm};
  comm->tensors->past.exists = false;
  comm->tensors->regrouping = true;
  lcomm_status status = replace(&it);
  if (status == LCOMM_OK && comm->tensors->grouped) {
    status = lcomm_tensor_states_restore(comm, it.is_new);
  }
  comm->tensors->grouped |= status == LCOMM_OK;
  free(it.is_new);
  LCOMM_TRY(status);
  LCOMM_TRY(comm->deferred.shards ? lcomm_buckets_make_shards(comm) : LCOMM_OK);
  comm->tensors->regrouping = false;
  return lcomm_guard_plan(comm);
}

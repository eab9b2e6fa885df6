/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Buckets: how tensors are grouped. */

#include "libcomm/bucket.h"
#include "libcomm/floats.h"
#include "libcomm/handles.h"
#include "libcomm/run_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- making */

static bool stays_exact(const lcomm_comm *comm, const lcomm_tensor *tensor) {
  uint64_t bytes = tensor->count * lcomm_dtype_size(tensor->dtype);
  if (lcomm_sum_stays_exact(tensor->dtype, tensor->op)) {
    return true;
  }
  return bytes < comm->policy.min_bytes || lcomm_policy_exempts(&comm->policy, tensor->name);
}

static bool has_room(const lcomm_comm *comm, const lcomm_bucket *bucket,
                     const lcomm_tensor *tensor) {
  uint64_t bytes = (bucket->count + tensor->count) * lcomm_dtype_size(bucket->dtype);
  return bytes <= comm->policy.bucket_bytes;
}

/* The open bucket of this kind, NULL if there is none with room. Only the
 * newest of a kind is open, so tensors keep their order. */
static lcomm_bucket *find_open(lcomm_comm *comm, const lcomm_tensor *tensor, bool exact) {
  for (size_t i = comm->bucket_count; i > 0; i--) {
    lcomm_bucket *bucket = &comm->buckets[i - 1];
    if (bucket->dtype == tensor->dtype && bucket->op == tensor->op && bucket->exact == exact) {
      return has_room(comm, bucket, tensor) ? bucket : NULL;
    }
  }
  return NULL;
}

static lcomm_status add_to_bucket(lcomm_comm *comm, size_t index) {
  lcomm_tensor *tensor = comm->tensors[index];
  bool exact = stays_exact(comm, tensor);
  lcomm_bucket *bucket = find_open(comm, tensor, exact);
  if (!bucket) {
    bucket = &comm->buckets[comm->bucket_count];
    memset(bucket, 0, sizeof(*bucket));
    bucket->tensors = malloc(comm->tensor_count * sizeof(lcomm_tensor *));
    if (!bucket->tensors) {
      return LCOMM_ERR_MEMORY;
    }
    bucket->comm = comm;
    bucket->dtype = tensor->dtype;
    bucket->element_size = lcomm_dtype_size(lcomm_sum_dtype(tensor->dtype));
    bucket->op = tensor->op;
    bucket->exact = exact;
    comm->bucket_count++;
  }
  tensor->offset = bucket->count;
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
  bucket->vector = bucket->comm->tensor_place > 0
                       ? lcomm_device_vector(bucket->comm, bucket->comm->tensor_place - 1, size)
                       : lcomm_links_memory_get(&bucket->comm->links, size);
  return bucket->vector ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

/* A long name is cut, never inside a character, and never what follows it. */
static void name_bucket(lcomm_bucket *bucket) {
  char more[32] = "";
  const char *name = bucket->tensors[0]->name;
  size_t length = strlen(name);
  if (bucket->tensor_count > 1) {
    snprintf(more, sizeof(more), " and %zu more", bucket->tensor_count - 1);
  }
  size_t room = sizeof(bucket->name) - 1 - strlen(more);
  if (length > room) {
    for (length = room; length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80;) {
      length--;
    }
  }
  snprintf(bucket->name, sizeof(bucket->name), "%.*s%s", (int)length, name, more);
}

lcomm_status lcomm_buckets_make(lcomm_comm *comm) {
  comm->buckets = calloc(comm->tensor_count, sizeof(*comm->buckets));
  lcomm_status status = comm->buckets ? LCOMM_OK : LCOMM_ERR_MEMORY;
  for (size_t i = 0; status == LCOMM_OK && i < comm->tensor_count; i++) {
    status = add_to_bucket(comm, i);
  }
  if (status == LCOMM_OK) {
    qsort(comm->buckets, comm->bucket_count, sizeof(*comm->buckets), by_last_tensor);
  }
  for (size_t i = 0; status == LCOMM_OK && i < comm->bucket_count; i++) {
    lcomm_bucket *bucket = &comm->buckets[i];
    for (size_t j = 0; j < bucket->tensor_count; j++) {
      bucket->tensors[j]->bucket = bucket;
    }
    name_bucket(bucket);
    status = make_vector(bucket);
  }
  return status == LCOMM_OK
             ? LCOMM_OK
             : lcomm_fail(comm, status, "out of memory for %zu tensors", comm->tensor_count);
}

/* -------------------------------------------------------------- freeing */

/* A run that was given up may still send from the vector; it keeps it then. */
static void free_bucket(lcomm_bucket *bucket) {
  lcomm_run *runs[2] = {bucket->run, bucket->exact_run};
  for (int i = 0; i < 2; i++) {
    if (runs[i] && runs[i]->abandoned) {
      runs[i]->own_vector = bucket->vector;
      bucket->vector = NULL;
    }
    lcomm_run_destroy(runs[i]);
  }
  lcomm_feedback_free(bucket->feedback);
  int place = bucket->comm->tensor_place;
  lcomm_floats_free(place, bucket->velocity);
  lcomm_floats_free(place, bucket->owed);
  if (place > 0) {
    (void)lcomm_device_get(NULL)->memory_free(bucket->vector);
  } else {
    lcomm_links_memory_free(&bucket->comm->links, bucket->vector);
  }
  free(bucket->tensors);
}

void lcomm_buckets_free(lcomm_comm *comm) {
  for (size_t i = 0; i < comm->bucket_count; i++) {
    free_bucket(&comm->buckets[i]);
  }
  for (size_t i = 0; i < comm->tensor_count; i++) {
    if (comm->tensors[i]->event) {
      (void)lcomm_device_get(NULL)->event_destroy(comm->tensors[i]->event);
    }
    lcomm_handle_remove(comm->tensors[i]);
    free(comm->tensors[i]);
  }
  free(comm->buckets);
  free(comm->tensors);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What was read and waits for all ranks to agree: matched with the tensors, and
 * placed where it was. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/floats.h"
#include "libcomm/state.h"

/* ---------------------------------------------------------------- making */

static lcomm_status out_of_memory(lcomm_placement *placement) {
  snprintf(placement->why, sizeof(placement->why), "out of memory for the saved state");
  return LCOMM_ERR_MEMORY;
}

lcomm_status lcomm_placement_begin(lcomm_comm *comm, lcomm_placement *placement) {
  memset(placement, 0, sizeof(*placement));
  placement->comm = comm;
  placement->buckets = calloc(comm->bucket_count + 1, sizeof(*placement->buckets));
  placement->seen = calloc(comm->tensor_count + 1, sizeof(*placement->seen));
  if (!placement->buckets || !placement->seen) {
    return out_of_memory(placement);
  }
  for (size_t i = 0; i < comm->bucket_count; i++) {
    lcomm_status status = lcomm_bucket_feedback(&comm->buckets[i], &placement->buckets[i].feedback);
    if (status != LCOMM_OK) {
      return status;
    }
  }
  return LCOMM_OK;
}

void lcomm_placement_free(lcomm_placement *placement) {
  int place = placement->comm ? placement->comm->tensor_place : 0;
  for (size_t i = 0; placement->buckets && i < placement->comm->bucket_count; i++) {
    lcomm_feedback_free(placement->buckets[i].feedback);
    lcomm_floats_free(place, placement->buckets[i].velocity);
    lcomm_floats_free(place, placement->buckets[i].owed);
  }
  free(placement->buckets);
  free(placement->seen);
  free(placement->ranges);
  memset(placement, 0, sizeof(*placement));
}

lcomm_status lcomm_placement_vector(lcomm_placement *placement, size_t bucket, float **vector) {
  if (!*vector) {
    const lcomm_comm *comm = placement->comm;
    *vector = lcomm_floats_get(comm->tensor_place, comm->buckets[bucket].count);
  }
  return *vector ? LCOMM_OK : out_of_memory(placement);
}

/* -------------------------------------------------------------- matching */

/* Files and programs list their tensors in the same order more often than not,
 * so the search begins where the last one ended. */
static lcomm_tensor *find_tensor(const lcomm_comm *comm, const char *name, size_t *index) {
  for (size_t i = 0; i < comm->tensor_count; i++) {
    size_t here = (*index + i) % comm->tensor_count;
    if (strcmp(comm->tensors[here]->name, name) == 0) {
      *index = here;
      return comm->tensors[here];
    }
  }
  return NULL;
}

static const char *operation(unsigned op) {
  static const char *const names[] = {"summed", "averaged", "smallest", "largest"};
  return op <= LCOMM_MAX ? names[op] : "of an unknown operation";
}

lcomm_status lcomm_placement_match(lcomm_placement *placement, const lcomm_state_tensor *record,
                                   size_t *index, lcomm_tensor **tensor) {
  *tensor = NULL;
  if (record->n == 0 && !record->has_velocity) {
    return LCOMM_OK;
  }
  lcomm_tensor *found = find_tensor(placement->comm, record->name, index);
  if (!found) {
    snprintf(placement->why, sizeof(placement->why),
             "tensor %s of %llu elements was saved, but has not been added here; add the same "
             "tensors before loading",
             record->name, (unsigned long long)record->count);
    return LCOMM_ERR_ARGUMENT;
  }
  if (found->count != record->count || (unsigned)found->op != record->op) {
    snprintf(placement->why, sizeof(placement->why),
             "tensor %s was saved as %llu elements, %s, but was added here as %llu, %s",
             record->name, (unsigned long long)record->count, operation(record->op),
             (unsigned long long)found->count, operation((unsigned)found->op));
    return LCOMM_ERR_ARGUMENT;
  }
  if (found->dtype == LCOMM_INT32 || found->dtype == LCOMM_INT64) {
    snprintf(placement->why, sizeof(placement->why),
             "tensor %s was saved with what was not sent yet, but is of %s here, which cannot take "
             "it; add it with a floating-point type",
             record->name, lcomm_dtype_name(found->dtype));
    return LCOMM_ERR_ARGUMENT;
  }
  if (placement->seen[*index]) {
    snprintf(placement->why, sizeof(placement->why), "tensor %s is twice in one file",
             record->name);
    return LCOMM_ERR_WIRE;
  }
  placement->seen[*index] = true;
  *tensor = found;
  return LCOMM_OK;
}

/* ------------------------------------------------- the same place as before */

bool lcomm_placement_all_zero(const uint8_t *values, uint64_t n) {
  for (uint64_t i = 0; i < n; i++) {
    float value;
    memcpy(&value, values + i * sizeof(value), sizeof(value));
    if (value < 0 || value > 0) {
      return false;
    }
  }
  return true;
}

/* A plan that is exact everywhere leaves its residual zero; it has any place. */
static bool is_nothing(const lcomm_state_tensor *record) {
  return lcomm_placement_all_zero(record->residual, record->n) &&
         (!record->momentum || lcomm_placement_all_zero(record->momentum, record->n));
}

static bool copy_kept(lcomm_placed_bucket *placed, const lcomm_tensor *tensor,
                      const lcomm_state_tensor *record) {
  lcomm_kept kept = lcomm_tensor_kept(tensor, placed->feedback);
  if (kept.first != record->first || kept.n != record->n || placed->velocity) {
    return is_nothing(record);
  }
  size_t size = record->n * sizeof(float);
  memcpy(placed->feedback->residual + kept.at, record->residual, size);
  if (record->momentum && placed->feedback->momentum) {
    memcpy(placed->feedback->momentum + kept.at, record->momentum, size);
  }
  placed->has_residual = true;
  return true;
}

lcomm_status lcomm_placement_velocity(lcomm_placement *placement, const lcomm_tensor *tensor,
                                      const lcomm_state_tensor *record) {
  size_t bucket = lcomm_placement_bucket(placement, tensor);
  float **velocity = &placement->buckets[bucket].velocity;
  lcomm_status status = lcomm_placement_vector(placement, bucket, velocity);
  if (status == LCOMM_OK && record->count > 0) {
    memcpy(*velocity + tensor->offset, record->velocity, record->count * sizeof(float));
  }
  return status;
}

lcomm_status lcomm_placement_copy(lcomm_placement *placement, lcomm_state_reader *reader,
                                  bool *fits) {
  lcomm_state_tensor record;
  lcomm_status status = LCOMM_OK;
  memset(placement->seen, 0, placement->comm->tensor_count * sizeof(*placement->seen));
  for (size_t i = 0; status == LCOMM_OK && *fits && lcomm_state_next(reader, &record); i++) {
    lcomm_tensor *tensor = NULL;
    status = lcomm_placement_match(placement, &record, &i, &tensor);
    if (status != LCOMM_OK || !tensor) {
      continue;
    }
    lcomm_placed_bucket *placed = &placement->buckets[lcomm_placement_bucket(placement, tensor)];
    if (record.n > 0) {
      *fits = copy_kept(placed, tensor, &record);
    }
    if (record.has_velocity && lcomm_placement_has_momentum(placement)) {
      *fits &= !placed->has_residual;
      status = lcomm_placement_velocity(placement, tensor, &record);
    }
  }
  return status;
}

/* ------------------------------------------------------------------- end */

void lcomm_placement_commit(lcomm_placement *placement) {
  int place = placement->comm->tensor_place;
  for (size_t i = 0; i < placement->comm->bucket_count; i++) {
    lcomm_bucket *bucket = &placement->comm->buckets[i];
    lcomm_placed_bucket *placed = &placement->buckets[i];
    lcomm_run_retire(bucket->comm,
                     bucket->run); /* the next step makes it again, with the feedback */
    lcomm_feedback_free(bucket->feedback);
    lcomm_floats_free(place, bucket->velocity);
    lcomm_floats_free(place, bucket->owed);
    bucket->run = NULL;
    bucket->feedback = placed->has_residual ? placed->feedback : NULL;
    bucket->velocity = placed->velocity;
    bucket->owed = placed->owed;
    placed->feedback = placed->has_residual ? NULL : placed->feedback;
    placed->velocity = placed->owed = NULL;
  }
}

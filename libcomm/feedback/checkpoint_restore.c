/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What was read and waits for all ranks to agree: placed where it was. */

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libcomm/feedback/checkpoint.h"
#include "libcomm/feedback/ef_memory.h"

/* ---------------------------------------------------------------- making */

static lcomm_status out_of_memory(lcomm_restore *restore) {
  return lcomm_why_set(&restore->why, LCOMM_ERR_MEMORY, "out of memory for the saved state");
}

/* Items of one lcomm_ef belong to one that is restored. */
static size_t find_restored(const lcomm_restore *restore, const lcomm_ef *ef) {
  size_t i = restore->count;
  while (i > 0 && restore->restored[i - 1].ef != ef) {
    i--;
  }
  return i > 0 ? i - 1 : restore->count;
}

static void list_all(lcomm_restore *restore) {
  for (size_t i = 0; i < restore->list->count; i++) {
    const lcomm_ef_item *item = &restore->list->items[i];
    size_t at = find_restored(restore, item->ef);
    restore->of[i] = at;
    if (at == restore->count) {
      restore->restored[restore->count++] =
          (lcomm_restored){.ef = item->ef, .milder = item->ef->milder, .made = item->calls};
    }
  }
}

lcomm_status lcomm_restore_begin(const lcomm_ef_list *list, lcomm_restore *restore) {
  memset(restore, 0, sizeof *restore);
  restore->list = list;
  restore->comm = list->comm;
  restore->restored = calloc(list->count + 1, sizeof *restore->restored);
  restore->of = calloc(list->count + 1, sizeof *restore->of);
  restore->seen = calloc(list->count + 1, sizeof *restore->seen);
  restore->guards = calloc(list->count + 1, sizeof *restore->guards);
  if (!restore->restored || !restore->of || !restore->seen || !restore->guards) {
    return out_of_memory(restore);
  }
  list_all(restore);
  return LCOMM_OK;
}

lcomm_status lcomm_restore_make(lcomm_restore *restore) {
  for (size_t i = 0; i < restore->count; i++) {
    lcomm_restored *it = &restore->restored[i];
    lcomm_ef by = *it->ef; /* lends its plans' requests */
    by.milder = it->milder;
    LCOMM_TRY(lcomm_ef_feedback(&by, &it->state.feedback));
  }
  return LCOMM_OK;
}

void lcomm_restore_free(lcomm_restore *restore) {
  for (size_t i = 0; restore->restored && i < restore->count; i++) {
    lcomm_restored *it = &restore->restored[i];
    lcomm_ef_state_free(restore->comm, it->ef->request.location, &it->state);
  }
  free(restore->restored);
  free(restore->of);
  free(restore->seen);
  free(restore->guards);
  free(restore->ranges);
  memset(restore, 0, sizeof *restore);
}

lcomm_status lcomm_restore_vector(lcomm_restore *restore, size_t index, float **vector) {
  const lcomm_restored *it = &restore->restored[index];
  if (!*vector) {
    *vector = lcomm_ef_memory_get(restore->comm, it->ef->request.location, it->ef->result.count);
  }
  return *vector ? LCOMM_OK : out_of_memory(restore);
}

uint64_t lcomm_restore_hash(const lcomm_ef_list *list) {
  uint64_t hash = 0;
  for (size_t i = list->tensors; i < list->count; i++) {
    const lcomm_ef_item *it = &list->items[i];
    const uint64_t *parts = it->ef->request.part_counts;
    uint64_t shape[3] = {it->count, (uint64_t)it->op, parts != NULL};
    hash = XXH3_64bits_withSeed(it->name, strlen(it->name), hash);
    hash = XXH3_64bits_withSeed(shape, sizeof(shape), hash);
    if (parts) {
      hash = XXH3_64bits_withSeed(parts, (size_t)list->comm->size * sizeof *parts, hash);
    }
  }
  return hash;
}

/* ------------------------------------------------- the same place as before */

bool lcomm_restore_all_zero(const uint8_t *values, uint64_t n) {
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
  return lcomm_restore_all_zero(record->residual, record->n) &&
         (!record->momentum || lcomm_restore_all_zero(record->momentum, record->n));
}

/* Where a record's elements are in what this rank will keep; n is 0 when it keeps others. */
static lcomm_ef_shard kept_of(const lcomm_restored *placed, const lcomm_target *target,
                              const lcomm_state_tensor *record) {
  if (!target->item->calls) {
    return lcomm_ef_shard_of(placed->state.feedback, target->offset, target->item->count);
  }
  for (int i = 0; i < lcomm_ef_part_count(placed->ef); i++) {
    lcomm_span part = lcomm_ef_part(placed->ef, placed->state.feedback, i);
    if (part.count > 0 && part.first == record->first) {
      return (lcomm_ef_shard){part.first, part.count, part.first - placed->state.feedback->first};
    }
  }
  return (lcomm_ef_shard){0, 0, 0};
}

static bool copy_kept(lcomm_restored *placed, const lcomm_target *target,
                      const lcomm_state_tensor *record) {
  lcomm_ef_shard kept = kept_of(placed, target, record);
  bool with_velocity = !(placed->ef->beta1 > 0) && (placed->state.velocity.now ||
                                                    (record->of_scatters && record->has_velocity));
  if (kept.first != record->first || kept.n != record->n || with_velocity) {
    return is_nothing(record);
  }
  size_t size = record->n * sizeof(float);
  memcpy(placed->state.feedback->residual.now + kept.at, record->residual, size);
  if (record->momentum && placed->state.feedback->momentum.now) {
    memcpy(placed->state.feedback->momentum.now + kept.at, record->momentum, size);
  }
  placed->has_residual = true;
  return true;
}

lcomm_status lcomm_restore_velocity(lcomm_restore *restore, const lcomm_target *target,
                                    const lcomm_state_tensor *record) {
  lcomm_restored *placed = &restore->restored[target->index];
  uint64_t first = target->offset + (record->of_scatters ? record->first : 0);
  uint64_t last = first + lcomm_state_velocity_count(record);
  uint64_t begin = first > placed->ef->result.first ? first : placed->ef->result.first;
  uint64_t result_end = placed->ef->result.first + placed->ef->result.count;
  uint64_t end = last < result_end ? last : result_end;
  lcomm_status status = lcomm_restore_vector(restore, target->index, &placed->state.velocity.now);
  if (status == LCOMM_OK && begin < end) {
    memcpy(placed->state.velocity.now + (begin - placed->ef->result.first),
           record->velocity + (begin - first) * sizeof(float), (end - begin) * sizeof(float));
  }
  return status;
}

/* Vectors of length 1. */
static bool is_basis(const float *values, uint64_t n) {
  bool all = true, any = false;
  for (uint64_t i = 0; i < n; i++) {
    all &= values[i] >= -2 && values[i] <= 2;
    any |= values[i] < 0 || values[i] > 0;
  }
  return all && any;
}

lcomm_status lcomm_restore_basis(lcomm_restore *restore, const lcomm_target *target,
                                 const lcomm_state_tensor *record) {
  lcomm_restored *placed = &restore->restored[target->index];
  const lcomm_ef *ef = placed->ef;
  lcomm_ef_array *basis = &placed->state.basis;
  uint64_t count = 0, at = lcomm_ef_lowrank_basis(ef, target->offset, &count);
  if (count == 0 || ef->lowrank.rank != record->shape.rank ||
      count != lcomm_state_basis_count(record)) {
    return LCOMM_OK;
  }
  if (lcomm_ef_lowrank_make_basis(ef, &placed->state) != LCOMM_OK) {
    return out_of_memory(restore);
  }
  memcpy(basis->now + at, record->basis, count * sizeof(float));
  if (!is_basis(basis->now + at, count)) {
    lcomm_ef_lowrank_start(basis->now + at, count / ef->lowrank.rank, ef->lowrank.rank);
  }
  return LCOMM_OK;
}

/* Of momentum correction one place has a residual or a momentum of results. A part of the latter
 * that is another rank's now has another place. */
static bool velocity_fits(const lcomm_restored *placed, const lcomm_state_tensor *record) {
  bool other = record->of_scatters &&
               (record->first != placed->ef->result.first || record->n != placed->ef->result.count);
  return !other && (placed->ef->beta1 > 0 || !placed->has_residual);
}

lcomm_status lcomm_restore_copy(lcomm_restore *restore, lcomm_state_reader *reader, bool *fits) {
  lcomm_state_tensor record;
  lcomm_status status = LCOMM_OK;
  lcomm_restore_next_file(restore);
  for (size_t i = 0; status == LCOMM_OK && *fits && lcomm_state_next(reader, &record); i++) {
    lcomm_target target;
    status = lcomm_restore_match(restore, &record, &i, &target);
    if (status != LCOMM_OK || target.ignored) {
      continue;
    }
    lcomm_restored *placed = &restore->restored[target.index];
    if (record.n > 0) {
      *fits = copy_kept(placed, &target, &record);
    }
    if (record.has_velocity && lcomm_restore_has_velocity(placed)) {
      *fits &= velocity_fits(placed, &record);
      status = lcomm_restore_velocity(restore, &target, &record);
    }
    if (status == LCOMM_OK && record.shape.rank > 0) {
      status = lcomm_restore_basis(restore, &target, &record);
    }
  }
  return status;
}

/* ------------------------------------------------------------------- end */

void lcomm_restore_commit(lcomm_restore *restore) {
  for (size_t i = 0; i < restore->count; i++) {
    lcomm_restored *placed = &restore->restored[i];
    if (!placed->has_residual) {
      lcomm_feedback_free(restore->comm, placed->state.feedback);
      placed->state.feedback = NULL;
    }
    lcomm_ef_replace(placed->ef, &placed->state);
    if (placed->made) {
      *placed->made = placed->calls;
    }
  }
}

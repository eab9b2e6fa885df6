/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which tensor or residual a saved record is of. */

#include <string.h>

#include "libcomm/feedback/checkpoint.h"

/* Files and programs list their tensors in the same order more often than not,
 * so the search begins where the last one ended. */
static const lcomm_ef_item *find_tensor(const lcomm_ef_list *list, const char *name,
                                        size_t *index) {
  for (size_t i = 0; i < list->tensors; i++) {
    size_t here = (*index + i) % list->tensors;
    if (strcmp(list->items[here].name, name) == 0) {
      *index = here;
      return &list->items[here];
    }
  }
  return NULL;
}

static const char *operation(unsigned op) {
  static const char *const names[] = {"summed", "averaged", "smallest", "largest"};
  return op <= LCOMM_MAX ? names[op] : "of an unknown operation";
}

static lcomm_status match_tensor(lcomm_restore *restore, const lcomm_state_tensor *record,
                                 size_t *index, lcomm_target *target) {
  const lcomm_ef_item *found = find_tensor(restore->list, record->name, index);
  if (!found) {
    return lcomm_why_set(
        &restore->why, LCOMM_ERR_ARGUMENT,
        "tensor %s of %llu elements was saved, but has not been added here; add the same "
        "tensors before loading",
        record->name, (unsigned long long)record->count);
  }
  if (found->count != record->count || (unsigned)found->op != record->op) {
    return lcomm_why_set(&restore->why, LCOMM_ERR_ARGUMENT,
                         "tensor %s was saved as %llu elements, %s, but was added here as %llu, %s",
                         record->name, (unsigned long long)record->count, operation(record->op),
                         (unsigned long long)found->count, operation((unsigned)found->op));
  }
  if (LCOMM_DTYPE_IS_WHOLE(found->dtype)) {
    return lcomm_why_set(
        &restore->why, LCOMM_ERR_ARGUMENT,
        "tensor %s was saved with what was not sent yet, but is of %s here, which cannot take "
        "it; add it with a floating-point type",
        record->name, lcomm_dtype_name(found->dtype));
  }
  if (restore->seen[*index]) {
    return lcomm_why_set(&restore->why, LCOMM_ERR_WIRE, "tensor %s is twice in one file",
                         record->name);
  }
  restore->seen[*index] = true;
  target->index = restore->of[*index];
  target->item = found;
  target->offset = found->offset;
  return LCOMM_OK;
}

static const char *kind(bool scatters) {
  return scatters ? "reduce-scatters" : "all-reduces";
}

/* The calls of that name; NULL when there are none. */
static const lcomm_ef_item *find_calls(const lcomm_ef_list *list, const char *name) {
  size_t i = list->tensors;
  while (i < list->count && strcmp(list->items[i].name, name) != 0) {
    i++;
  }
  return i < list->count ? &list->items[i] : NULL;
}

/* Its records follow each other, each behind what the one before it keeps. */
static lcomm_status take_turn(lcomm_restore *restore, const lcomm_state_tensor *record,
                              lcomm_restored *placed) {
  if (placed->seen && (record->n == 0 || record->first < placed->end || !record->of_scatters)) {
    return lcomm_why_set(&restore->why, LCOMM_ERR_WIRE, "residual %s is twice in one file",
                         record->name);
  }
  placed->seen = true;
  placed->end = record->first + record->n;
  placed->calls = record->calls;
  return LCOMM_OK;
}

static lcomm_status match_calls(lcomm_restore *restore, const lcomm_state_tensor *record,
                                lcomm_target *target) {
  bool empty = restore->list->leaves_out_calls || (record->n == 0 && !record->has_velocity);
  const lcomm_ef_item *found = find_calls(restore->list, record->name);
  if (!found) {
    target->ignored = empty;
    return empty ? LCOMM_OK
                 : lcomm_why_set(&restore->why, LCOMM_ERR_ARGUMENT,
                                 "residual %s of %llu elements was saved, but has not been made "
                                 "here; make the same residuals before loading",
                                 record->name, (unsigned long long)record->count);
  }
  bool scatters = lcomm_ef_scatters(found->ef);
  target->item = found;
  target->index = restore->of[found - restore->list->items];
  if (found->count != record->count || (unsigned)found->op != record->op ||
      scatters != record->of_scatters) {
    return lcomm_why_set(
        &restore->why, LCOMM_ERR_ARGUMENT,
        "residual %s was saved as %llu elements, %s, for %s, but was made here as %llu, %s, "
        "for %s",
        record->name, (unsigned long long)record->count, operation(record->op),
        kind(record->of_scatters), (unsigned long long)found->count, operation((unsigned)found->op),
        kind(scatters));
  }
  return take_turn(restore, record, &restore->restored[target->index]);
}

/* All ranks have the same of a tensor or of calls, so any record says it. */
void lcomm_restore_note_guards(lcomm_restore *restore, lcomm_state_reader reader) {
  const lcomm_ef_list *list = restore->list;
  lcomm_state_tensor record;
  size_t index = 0;
  while (lcomm_state_next(&reader, &record)) {
    const lcomm_ef_item *item =
        record.of_calls ? find_calls(list, record.name) : find_tensor(list, record.name, &index);
    if (item) {
      restore->guards[item - list->items] = record.guard;
    }
  }
}

lcomm_status lcomm_restore_match(lcomm_restore *restore, const lcomm_state_tensor *record,
                                 size_t *index, lcomm_target *target) {
  *target = (lcomm_target){.ignored = false};
  if (record->of_calls) {
    return match_calls(restore, record, target);
  }
  if (record->n == 0 && !record->has_velocity) {
    target->ignored = true;
    return LCOMM_OK;
  }
  return match_tensor(restore, record, index, target);
}

void lcomm_restore_next_file(lcomm_restore *restore) {
  memset(restore->seen, 0, restore->list->count * sizeof *restore->seen);
  for (size_t i = 0; i < restore->count; i++) {
    restore->restored[i].seen = false;
    restore->restored[i].end = 0;
  }
}

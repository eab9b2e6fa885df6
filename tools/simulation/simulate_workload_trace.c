/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A workload from the trace of a rank. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/simulation/simulate_workload.h"
#include "tools/trace/trace_source.h"

/* Operations of buckets, as the trace has them. */
typedef struct operation {
  char name[SIMULATE_TENSOR_NAME_MAX];
  uint32_t sequence;
  uint64_t bytes;
  int64_t begin_ns, end_ns;
  lcomm_trace_factor factor;
} operation;

typedef struct operations {
  operation *all;
  size_t count, room;
} operations;

/* Buckets have the odd numbers. */
static bool is_bucket(const lcomm_trace_item *item) {
  return item->kind == LCOMM_ITEM_EVENT && item->event.kind == LCOMM_TRACE_OPERATION &&
         item->event.sequence % 2 == 1 && item->event.bytes >= sizeof(float) &&
         item->place.end_ns >= item->place.begin_ns;
}

static bool add(operations *it, const lcomm_trace_item *item) {
  if (it->count == it->room) {
    size_t room = it->room > 0 ? 2 * it->room : 64;
    operation *all = room <= SIMULATE_TENSORS_MAX ? realloc(it->all, room * sizeof *all) : NULL;
    if (!all) {
      return false;
    }
    it->all = all;
    it->room = room;
  }
  operation *made = &it->all[it->count++];
  *made = (operation){.sequence = item->event.sequence,
                      .bytes = item->event.bytes,
                      .begin_ns = item->place.begin_ns,
                      .end_ns = item->place.end_ns,
                      .factor = item->event.factor};
  snprintf(made->name, sizeof made->name, "%.*s", (int)sizeof made->name - 1, item->name);
  return true;
}

static bool read_all(lcomm_trace_source *source, operations *it, char *why) {
  char reason[LCOMM_TRACE_WHY_MAX] = "";
  static lcomm_trace_item item;
  lcomm_trace_next next = LCOMM_NEXT_ITEM;
  while ((next = lcomm_trace_source_next(source, &item, reason)) == LCOMM_NEXT_ITEM) {
    if (is_bucket(&item) && !add(it, &item)) {
      snprintf(why, SIMULATE_WHY_MAX, "too many operations");
      return false;
    }
  }
  if (next == LCOMM_NEXT_BAD) {
    snprintf(why, SIMULATE_WHY_MAX, "%.480s", reason);
  }
  return next == LCOMM_NEXT_END;
}

static int by_sequence(const void *a, const void *b) {
  const operation *left = a, *right = b;
  return (left->sequence > right->sequence) - (left->sequence < right->sequence);
}

/* A step has each name once. The last whole one: from where its names begin again to the end.
 * Returns its first operation, or count where there are no two steps. */
static size_t last_step(const operations *it) {
  const char *name = it->count > 0 ? it->all[0].name : "";
  size_t first = it->count, before = it->count;
  for (size_t i = 0; i < it->count; i++) {
    if (strcmp(it->all[i].name, name) == 0) {
      before = first;
      first = i;
    }
  }
  /* the last one may be cut off: then the one before counts */
  size_t length = it->count - first;
  bool is_cut = before < it->count && first - before > length && before > 0;
  return is_cut ? before : first > 0 ? first : it->count;
}

static size_t length_of(const operations *it, size_t first) {
  size_t end = first + 1;
  while (end < it->count && strcmp(it->all[end].name, it->all[first].name) != 0) {
    end++;
  }
  return end - first;
}

/* Of low rank the first of two sums is the tensor; of several matrices it has their rows and
 * columns together. */
static bool add_tensor(const operation *it, int64_t later_ns, simulate_workload *workload) {
  bool factored = it->factor.sum > 0;
  uint64_t count = factored ? it->factor.elements : it->bytes / sizeof(float);
  if (!simulate_workload_add(workload, it->name, count, (double)later_ns * 1e-9)) {
    return false;
  }
  simulate_tensor *made = &workload->tensors[workload->count - 1];
  made->rows = it->factor.rows;
  made->columns = it->factor.columns;
  return true;
}

static bool make(const operations *it, simulate_workload *workload, char *why) {
  size_t first = last_step(it);
  if (first >= it->count) {
    snprintf(why, SIMULATE_WHY_MAX,
             "it has no two steps of tensors; record more of them with LCOMM_TRACE");
    return false;
  }
  size_t length = length_of(it, first);
  int64_t end_ns = 0, now_ns;
  for (size_t i = 0; i < first; i++) {
    end_ns = it->all[i].end_ns > end_ns ? it->all[i].end_ns : end_ns;
  }
  if (!simulate_workload_begin(length, workload)) {
    snprintf(why, SIMULATE_WHY_MAX, "out of memory for %zu tensors", length);
    return false;
  }
  now_ns = it->all[first].begin_ns;
  workload->forward = now_ns > end_ns ? simulate_time_of((double)(now_ns - end_ns) * 1e-9) : 0;
  for (size_t i = first; i < first + length; i++) {
    if (it->all[i].factor.sum == 2) {
      continue;
    }
    int64_t later_ns = it->all[i].begin_ns > now_ns ? it->all[i].begin_ns - now_ns : 0;
    if (!add_tensor(&it->all[i], later_ns, workload)) {
      snprintf(why, SIMULATE_WHY_MAX, "its times or sizes are too large");
      simulate_workload_free(workload);
      return false;
    }
    now_ns += later_ns;
  }
  if (workload->count == 0) {
    snprintf(why, SIMULATE_WHY_MAX, "its second sums of matrices have no first ones");
    simulate_workload_free(workload);
    return false;
  }
  return true;
}

bool simulate_workload_read_trace(const char *path, simulate_workload *workload, char *why) {
  static lcomm_trace_source source;
  char reason[LCOMM_TRACE_WHY_MAX];
  operations it = {0};
  if (!lcomm_trace_source_open(&source, path, reason)) {
    snprintf(why, SIMULATE_WHY_MAX, "%.500s", reason);
    return false;
  }
  bool good = read_all(&source, &it, why);
  lcomm_trace_source_close(&source);
  if (good) {
    if (it.count > 0) {
      qsort(it.all, it.count, sizeof *it.all, by_sequence);
    }
    good = make(&it, workload, why);
  }
  free(it.all);
  if (good) {
    snprintf(workload->source, sizeof workload->source, "trace %.100s, %zu buckets", path,
             workload->count);
  }
  return good;
}

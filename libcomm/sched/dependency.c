/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Dependencies are found by a sweep over the vector instead of by comparing all pairs: the time is
 * proportional to the number of uses and of overlaps. */

#include "libcomm/sched/dependency.h"

#include <stdlib.h>

bool lcomm_dependencies_add(lcomm_dependencies *dependencies, uint32_t a, uint32_t b) {
  if (dependencies->count == dependencies->room) {
    size_t room = dependencies->room * 2 + 256;
    lcomm_dependency *bigger = realloc(dependencies->list, room * sizeof *bigger);
    if (!bigger) {
      return false;
    }
    dependencies->list = bigger;
    dependencies->room = room;
  }
  dependencies->list[dependencies->count++] =
      a < b ? (lcomm_dependency){a, b} : (lcomm_dependency){b, a};
  return true;
}

/* Order by `to`, keeping the order of equals, and swap both ends. */
static bool turn(lcomm_dependencies *dependencies, uint32_t step_count) {
  size_t *place = calloc((size_t)step_count + 1, sizeof *place);
  lcomm_dependency *turned = malloc((dependencies->count + 1) * sizeof *turned);
  bool good = place && turned;
  for (size_t i = 0; good && i < dependencies->count; i++) {
    place[dependencies->list[i].to + 1]++;
  }
  for (uint32_t step = 0; good && step < step_count; step++) {
    place[step + 1] += place[step];
  }
  for (size_t i = 0; good && i < dependencies->count; i++) {
    lcomm_dependency dependency = dependencies->list[i];
    turned[place[dependency.to]++] = (lcomm_dependency){dependency.to, dependency.from};
  }
  free(place);
  if (!good) {
    free(turned);
    return false;
  }
  free(dependencies->list);
  dependencies->list = turned;
  dependencies->room = dependencies->count + 1;
  return true;
}

bool lcomm_dependencies_sort(lcomm_dependencies *dependencies, uint32_t step_count) {
  return turn(dependencies, step_count) && turn(dependencies, step_count);
}

static int by_first(const void *left, const void *right) {
  const lcomm_use *a = left, *b = right;
  return a->span.first < b->span.first ? -1 : a->span.first > b->span.first;
}

/* Uses that began at or before the place of the sweep. Those that have ended
 * are thrown out when somebody comes across them. */
typedef struct open_uses {
  const lcomm_use **list;
  size_t count;
} open_uses;

static bool depend_on(lcomm_dependencies *dependencies, open_uses *open, const lcomm_use *use) {
  for (size_t i = 0; i < open->count;) {
    const lcomm_use *other = open->list[i];
    if (other->span.first + other->span.count <= use->span.first) {
      open->list[i] = open->list[--open->count];
      continue;
    }
    i++;
    if (lcomm_span_overlap(other->span, use->span) &&
        !lcomm_dependencies_add(dependencies, other->step, use->step)) {
      return false;
    }
  }
  return true;
}

bool lcomm_dependencies_by_overlap(lcomm_dependencies *dependencies, lcomm_use *uses,
                                   size_t count) {
  const lcomm_use **lists = malloc((2 * count + 1) * sizeof(const lcomm_use *));
  if (!lists) {
    return false;
  }
  open_uses readers = {lists, 0}, writers = {lists + count, 0};
  bool good = true;
  qsort(uses, count, sizeof *uses, by_first);
  for (size_t i = 0; good && i < count; i++) {
    const lcomm_use *use = &uses[i];
    if (use->span.count == 0) {
      continue;
    }
    good = depend_on(dependencies, &writers, use) &&
           (!use->writes || depend_on(dependencies, &readers, use));
    open_uses *mine = use->writes ? &writers : &readers;
    mine->list[mine->count++] = use;
  }
  free(lists);
  return good;
}

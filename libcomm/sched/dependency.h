/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_SCHED_DEPENDENCY_H
#define LCOMM_SCHED_DEPENDENCY_H

/* Dependencies, for the linker: pairs of steps of which the later one waits for the earlier one,
 * found from the parts of the vector that steps use. All functions return false when memory has run
 * out. */

#include "libcomm/sched/sched.h"

typedef struct lcomm_dependency {
  uint32_t from, to; /* steps, from < to */
} lcomm_dependency;

/* Begins zeroed, ends with free(list). */
typedef struct lcomm_dependencies {
  lcomm_dependency *list;
  size_t count, room;
} lcomm_dependencies;

/* Add a dependency between two different steps; the order of the arguments does not matter. */
bool lcomm_dependencies_add(lcomm_dependencies *dependencies, uint32_t a, uint32_t b);

/* Order by from, then by to. A dependency may then occur several times, in neighbouring entries. */
bool lcomm_dependencies_sort(lcomm_dependencies *dependencies, uint32_t step_count);

/* One step's use of a part of the vector. */
typedef struct lcomm_use {
  lcomm_span span;
  uint32_t step;
  bool writes; /* false: only reads */
} lcomm_use;

/* Add a dependency for every two uses that overlap, if at least one of them writes. Changes the
 * order of `uses`. */
bool lcomm_dependencies_by_overlap(lcomm_dependencies *dependencies, lcomm_use *uses, size_t count);

/* Slots that a step reads: how many, and each. Some may not exist
 * (LCOMM_NO_SLOT, LCOMM_SOURCE_SELF). */
uint32_t lcomm_step_read_count(const lcomm_step *step);
uint32_t lcomm_step_read(const lcomm_schedule *schedule, const lcomm_step *step, uint32_t index);

/* Make slots aliases of parts of the vector where that is safe: fill in their alias. */
bool lcomm_schedule_set_aliases(lcomm_schedule *schedule, const bool copies[LCOMM_STAGE_COUNT]);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Make a plan: select, build the schedule, link it, verify it, size its slots. */

#include "libcomm/plan/plan.h"
#include "libcomm/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/plan/auto_choose.h"
#include "libcomm/plan/eligibility.h"
#include "libcomm/plan/plan_make.h"
#include "libcomm/plan/select.h"

const char *lcomm_collective_name(lcomm_collective collective) {
  static const char *const names[] = {
      [LCOMM_COLLECTIVE_ALLREDUCE] = "all-reduce",
      [LCOMM_COLLECTIVE_REDUCE_SCATTER] = "reduce-scatter",
      [LCOMM_COLLECTIVE_ALLGATHER] = "all-gather",
      [LCOMM_COLLECTIVE_BROADCAST] = "broadcast",
      [LCOMM_COLLECTIVE_BARRIER] = "barrier",
      [LCOMM_COLLECTIVE_ALLGATHERV] = "uneven all-gather",
      [LCOMM_COLLECTIVE_ALLTOALL] = "all-to-all",
      [LCOMM_COLLECTIVE_REDUCE_SCATTERV] = "uneven reduce-scatter",
  };
  return (unsigned)collective < sizeof(names) / sizeof(names[0]) ? names[collective] : "unknown";
}

/* ------------------------------------------------------------ the vector */

lcomm_op lcomm_plan_op(lcomm_op op) {
  return op == LCOMM_AVG ? LCOMM_SUM : op;
}

lcomm_dtype lcomm_sum_dtype(lcomm_dtype dtype) {
  return dtype == LCOMM_FLOAT16 || dtype == LCOMM_BFLOAT16 ? LCOMM_FLOAT32 : dtype;
}

bool lcomm_sum_stays_exact(lcomm_dtype dtype, lcomm_op op) {
  return op == LCOMM_MIN || op == LCOMM_MAX || lcomm_sum_dtype(dtype) != LCOMM_FLOAT32;
}

static bool is_lossy(const lcomm_plan *plan) {
  bool exact = true;
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    exact &= lcomm_eligibility_is_exact(&plan->stages[i].format, plan->dtype);
  }
  return !exact && !lcomm_collective_moves(plan->collective);
}

/* The vector is so many times the count of the request. */
static uint64_t times_count(lcomm_collective collective, uint64_t ranks) {
  switch (collective) {
  case LCOMM_COLLECTIVE_REDUCE_SCATTER:
  case LCOMM_COLLECTIVE_ALLGATHER:
    return ranks;
  case LCOMM_COLLECTIVE_ALLTOALL:
    return 2 * ranks; /* the input, then the output */
  default:
    return 1;
  }
}

static size_t element_size(lcomm_collective collective, lcomm_dtype dtype) {
  return lcomm_dtype_size(lcomm_collective_moves(collective) ? dtype : lcomm_sum_dtype(dtype));
}

bool lcomm_plan_fits_memory(const lcomm_plan_request *request, int ranks) {
  size_t element = element_size(request->collective, request->dtype);
  uint64_t times = times_count(request->collective, (uint64_t)ranks);
  uint64_t size = 0;
  return element > 0 && !__builtin_mul_overflow(request->count, element * times, &size) &&
         size <= LCOMM_VECTOR_SIZE_MAX;
}

static void size_vector(lcomm_plan *plan, int ranks) {
  plan->element_size = element_size(plan->collective, plan->dtype);
  plan->vector_count = plan->count * times_count(plan->collective, (uint64_t)ranks);
  if (plan->collective == LCOMM_COLLECTIVE_BARRIER) {
    plan->vector_count = 1;
  }
  if (plan->collective == LCOMM_COLLECTIVE_ALLTOALL) {
    plan->input_count = plan->vector_count / 2;
  }
}

/* The caller's buffers serve unless elements are converted. A reduce-scatter
 * must not write partial sums into the send buffer, a barrier has no buffer, and
 * a bucket brings a vector. */
size_t lcomm_plan_vector_size(const lcomm_plan *plan) {
  bool converts = lcomm_dtype_size(plan->dtype) != plan->element_size;
  bool scatters = lcomm_collective_scatters(plan->collective);
  bool own = converts || plan->collective == LCOMM_COLLECTIVE_BARRIER;
  return scatters || (own && !plan->error_feedback) ? plan->vector_count * plan->element_size : 0;
}

lcomm_span lcomm_plan_part(const lcomm_plan *plan, int rank) {
  uint64_t first = 0;
  if (!plan->part_counts) {
    bool whole = plan->vector_count == plan->count;
    return lcomm_span_whole(whole ? 0 : plan->count * (uint64_t)rank, plan->count);
  }
  for (int i = 0; i < rank; i++) {
    first += plan->part_counts[i];
  }
  return lcomm_span_whole(first, plan->part_counts[rank]);
}

size_t lcomm_plan_input_size(const lcomm_plan *plan) {
  return plan->in_place ? plan->input_count * plan->element_size : 0;
}

static lcomm_status build(lcomm_plan *plan, const lcomm_topo *topo) {
  switch (plan->collective) {
  case LCOMM_COLLECTIVE_ALLREDUCE:
  case LCOMM_COLLECTIVE_BARRIER:
    return lcomm_allreduce_build(&plan->schedule, topo, &plan->shape);
  case LCOMM_COLLECTIVE_REDUCE_SCATTER:
  case LCOMM_COLLECTIVE_REDUCE_SCATTERV:
    return lcomm_reduce_scatter_build(&plan->schedule, topo, plan->count, plan->part_counts,
                                      plan->shape.exchange);
  case LCOMM_COLLECTIVE_ALLGATHER:
  case LCOMM_COLLECTIVE_ALLGATHERV:
    return lcomm_allgather_build(&plan->schedule, topo, plan->count, plan->part_counts,
                                 plan->shape.exchange);
  case LCOMM_COLLECTIVE_ALLTOALL:
    return lcomm_alltoall_build(&plan->schedule, topo, plan->count);
  case LCOMM_COLLECTIVE_BROADCAST:
    return lcomm_broadcast_build(&plan->schedule, topo, plan->root, plan->shape.chunks);
  case LCOMM_COLLECTIVE_COUNT:
    break;
  }
  return LCOMM_ERR_ARGUMENT;
}

/* ------------------------------------------------------------ the plan */

/* Uneven parts, which must be `count` together. */
static lcomm_status copy_parts(lcomm_plan *plan, const lcomm_plan_request *request, int ranks) {
  uint64_t left = plan->count;
  if (!lcomm_collective_has_parts(plan->collective)) {
    return LCOMM_OK;
  }
  plan->part_counts = malloc((size_t)ranks * sizeof *plan->part_counts);
  if (!plan->part_counts) {
    return LCOMM_ERR_MEMORY;
  }
  for (int i = 0; i < ranks; i++) {
    if (request->part_counts[i] > left) {
      return LCOMM_ERR_INTERNAL;
    }
    plan->part_counts[i] = request->part_counts[i];
    left -= plan->part_counts[i];
  }
  return left == 0 ? LCOMM_OK : LCOMM_ERR_INTERNAL;
}

static lcomm_status copy_segments(lcomm_plan *plan, const lcomm_plan_request *request) {
  if (request->segments == 0) {
    return LCOMM_OK;
  }
  plan->segment_ends = malloc(request->segments * sizeof *plan->segment_ends);
  if (!plan->segment_ends) {
    return LCOMM_ERR_MEMORY;
  }
  memcpy(plan->segment_ends, request->segment_ends, request->segments * sizeof *plan->segment_ends);
  plan->segments = request->segments;
  return LCOMM_OK;
}

/* Stages whose payloads are plain copies of the vector. */
static void find_copies(const lcomm_plan *plan, bool copies[LCOMM_STAGE_COUNT]) {
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    const lcomm_format *format = &plan->stages[i].format;
    copies[i] = format->codec->id == LCOMM_CODEC_NONE && !format->zstd;
  }
}

static lcomm_status outline(lcomm_plan *plan, const lcomm_plan_request *request,
                            const lcomm_policy *policy, const lcomm_topo *topo, int rank,
                            lcomm_why *why) {
  bool copies[LCOMM_STAGE_COUNT];
  if (!lcomm_plan_fits_memory(request, topo->size)) {
    return lcomm_why_set(why, LCOMM_ERR_ARGUMENT,
                         "%llu elements on %d ranks do not fit into memory",
                         (unsigned long long)request->count, topo->size);
  }
  (void)lcomm_why_set(why, LCOMM_ERR_MEMORY, "out of memory while planning");
  size_vector(plan, topo->size);
  LCOMM_TRY(copy_parts(plan, request, topo->size));
  LCOMM_TRY(copy_segments(plan, request));
  lcomm_plan_select(plan, request, policy, topo);
  plan->lossy = is_lossy(plan);
  find_copies(plan, copies);
  LCOMM_TRY(lcomm_schedule_init(&plan->schedule, rank, topo->size, plan->vector_count));
  LCOMM_TRY(build(plan, topo));
  LCOMM_TRY(lcomm_schedule_link(&plan->schedule, copies));
  return lcomm_plan_bound_slots(plan);
}

lcomm_status lcomm_plan_part_slots(lcomm_plan *plan) {
  static const bool none[LCOMM_STAGE_COUNT] = {false};
  LCOMM_TRY(lcomm_schedule_link(&plan->schedule, none));
  lcomm_plan_place_slots(plan);
  return LCOMM_OK;
}

static lcomm_plan *new_plan(const lcomm_plan_request *request, const lcomm_policy *policy,
                            int candidate) {
  lcomm_plan *made = calloc(1, sizeof *made);
  if (made) {
    made->collective = request->collective;
    made->dtype = request->dtype;
    made->count = request->count;
    made->op = lcomm_plan_op(request->op);
    made->root = request->root;
    made->in_place = request->in_place;
    made->location = request->location;
    made->error_feedback = request->error_feedback;
    made->checksum = policy->checksum;
    made->automatic.candidate = candidate;
  }
  return made;
}

lcomm_status lcomm_plan_outline(const lcomm_plan_request *request, const lcomm_policy *policy,
                                const lcomm_topo *topo, int rank, int candidate, lcomm_plan **plan,
                                lcomm_why *why) {
  lcomm_plan *made = new_plan(request, policy, candidate);
  if (!made) {
    return lcomm_why_set(why, LCOMM_ERR_MEMORY, "out of memory while planning");
  }
  lcomm_status status = outline(made, request, policy, topo, rank, why);
  if (status != LCOMM_OK) {
    lcomm_plan_destroy(made);
    return status;
  }
  *plan = made;
  return LCOMM_OK;
}

lcomm_status lcomm_plan_make(const lcomm_plan_request *request, const lcomm_policy *policy,
                             const lcomm_topo *topo, int rank, int candidate, lcomm_plan **plan,
                             lcomm_why *why) {
  lcomm_plan *made = NULL;
  LCOMM_TRY(lcomm_plan_outline(request, policy, topo, rank, candidate, &made, why));
  made->hash = lcomm_plan_hash(made, policy, topo);
  lcomm_status status = lcomm_schedule_verify(&made->schedule, why);
  if (status != LCOMM_OK) {
    lcomm_plan_destroy(made);
    return status;
  }
  *plan = made;
  return LCOMM_OK;
}

lcomm_status lcomm_plan_create(const lcomm_plan_request *request, const lcomm_policy *policy,
                               const lcomm_topo *topo, int rank, lcomm_plan **plan,
                               lcomm_why *why) {
  lcomm_plan *made = NULL;
  LCOMM_TRY(lcomm_plan_make(request, policy, topo, rank, 0, &made, why));
  lcomm_status status = made->automatic.allowed
                            ? lcomm_auto_choose(request, policy, topo, rank, &made, why)
                            : LCOMM_OK;
  if (status != LCOMM_OK) {
    lcomm_plan_destroy(made);
    return status;
  }
  *plan = made;
  return LCOMM_OK;
}

void lcomm_plan_destroy(lcomm_plan *plan) {
  if (!plan) {
    return;
  }
  lcomm_schedule_free(&plan->schedule);
  free(plan->part_counts);
  free(plan->segment_ends);
  free(plan->slot_sizes);
  free(plan);
}

bool lcomm_plan_feedback(const lcomm_plan *plan, uint64_t *first, uint64_t *count) {
  uint64_t begin = UINT64_MAX, end = 0;
  *first = *count = 0;
  if (!plan->stages[LCOMM_STAGE_NET].error_feedback) {
    return false;
  }
  for (uint32_t i = 0; i < plan->schedule.step_count; i++) {
    const lcomm_step *step = &plan->schedule.steps[i];
    if (step->feedback == LCOMM_FEEDBACK_NONE) {
      continue;
    }
    begin = step->span.first < begin ? step->span.first : begin;
    uint64_t last = step->span.first + step->span.count;
    end = last > end ? last : end;
  }
  if (end > begin) {
    *first = begin;
    *count = end - begin;
  }
  return true;
}

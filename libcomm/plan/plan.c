/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Make a plan: choose, build the schedule, link it, verify it, size its slots. */

#include "libcomm/plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libcomm/plan/choose.h"

const char *lcomm_collective_name(lcomm_collective collective) {
  static const char *const names[] = {
      [LCOMM_COLLECTIVE_ALLREDUCE] = "all-reduce",
      [LCOMM_COLLECTIVE_REDUCE_SCATTER] = "reduce-scatter",
      [LCOMM_COLLECTIVE_ALLGATHER] = "all-gather",
      [LCOMM_COLLECTIVE_BROADCAST] = "broadcast",
      [LCOMM_COLLECTIVE_BARRIER] = "barrier",
  };
  return (unsigned)collective < sizeof(names) / sizeof(names[0]) ? names[collective] : "unknown";
}

/* ------------------------------------------------------------ the vector */

/* Moved bytes are handled as 32-bit words; a segment is padded to whole words. */
static uint64_t words(uint64_t count, lcomm_dtype dtype) {
  return lcomm_dtype_size(dtype) == sizeof(float) ? count : count / 2 + count % 2;
}

static lcomm_status size_vector(lcomm_plan *plan, int ranks) {
  uint64_t per_rank = plan->count;
  plan->moves = plan->collective == LCOMM_COLLECTIVE_ALLGATHER ||
                plan->collective == LCOMM_COLLECTIVE_BROADCAST;
  bool segmented = plan->collective == LCOMM_COLLECTIVE_ALLGATHER ||
                   plan->collective == LCOMM_COLLECTIVE_REDUCE_SCATTER;
  if (plan->moves) {
    per_rank = words(plan->count, plan->dtype);
  }
  uint64_t segments = segmented ? (uint64_t)ranks : 1;
  if (per_rank > SIZE_MAX / sizeof(float) / 4 / segments) {
    return LCOMM_ERR_ARGUMENT;
  }
  plan->vector_count = plan->collective == LCOMM_COLLECTIVE_BARRIER ? 1 : per_rank * segments;
  return LCOMM_OK;
}

static lcomm_status build(lcomm_plan *plan, const lcomm_topo *topo) {
  uint64_t segment = plan->vector_count / (uint64_t)topo->size;
  switch (plan->collective) {
  case LCOMM_COLLECTIVE_ALLREDUCE:
    return lcomm_allreduce_build(&plan->schedule, topo, &plan->shape);
  case LCOMM_COLLECTIVE_REDUCE_SCATTER:
    return lcomm_reduce_scatter_build(&plan->schedule, topo, segment);
  case LCOMM_COLLECTIVE_ALLGATHER:
    return lcomm_allgather_build(&plan->schedule, topo, segment);
  case LCOMM_COLLECTIVE_BROADCAST:
    return lcomm_broadcast_build(&plan->schedule, topo, plan->root);
  case LCOMM_COLLECTIVE_BARRIER:
    return lcomm_barrier_build(&plan->schedule, topo);
  }
  return LCOMM_ERR_ARGUMENT;
}

/* ------------------------------------------------------------ the plan */

static uint64_t mix(uint64_t hash, uint64_t value) {
  return XXH3_64bits_withSeed(&value, sizeof(value), hash);
}

static uint64_t mix_format(uint64_t hash, const lcomm_format *format) {
  uint64_t density_bits;
  memcpy(&density_bits, &format->density, sizeof(density_bits));
  hash = mix(hash, (uint64_t)format->codec->id);
  hash = mix(hash, format->block);
  hash = mix(hash, format->variant);
  hash = mix(hash, (uint64_t)format->exponent);
  hash = mix(hash, format->zstd);
  hash = mix(hash, format->kept);
  return mix(hash, density_bits);
}

static uint64_t hash_plan(const lcomm_plan *plan, const lcomm_policy *policy,
                          const lcomm_topo *topo) {
  char text[LCOMM_POLICY_MAX];
  lcomm_policy_format(policy, text);
  uint64_t hash = XXH3_64bits(text, strlen(text));
  hash = mix(hash, (uint64_t)plan->collective);
  hash = mix(hash, (uint64_t)plan->dtype);
  hash = mix(hash, plan->count);
  hash = mix(hash, (uint64_t)plan->root);
  hash = mix(hash, plan->lasting);
  hash = mix(hash, (uint64_t)plan->shape.exchange);
  hash = mix(hash, plan->shape.hierarchical);
  hash = mix(hash, plan->shape.chunks);
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    hash = mix_format(hash, &plan->stages[i].format);
    hash = mix(hash, plan->stages[i].error_feedback);
  }
  for (size_t i = 0; i < plan->segments; i++) {
    hash = mix(hash, plan->segment_ends[i]);
  }
  for (int i = 0; i < topo->size; i++) {
    hash = mix(hash, (uint64_t)topo->node[i]);
  }
  return hash;
}

static lcomm_status copy_segments(lcomm_plan *plan, const lcomm_plan_request *request) {
  if (request->segments == 0) {
    return LCOMM_OK;
  }
  plan->segment_ends = malloc(request->segments * sizeof(*plan->segment_ends));
  if (!plan->segment_ends) {
    return LCOMM_ERR_MEMORY;
  }
  memcpy(plan->segment_ends, request->segment_ends,
         request->segments * sizeof(*plan->segment_ends));
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

static lcomm_status fill(lcomm_plan *plan, const lcomm_plan_request *request,
                         const lcomm_policy *policy, const lcomm_topo *topo, int rank, char *why,
                         size_t size) {
  bool copies[LCOMM_STAGE_COUNT];
  lcomm_status status = size_vector(plan, topo->size);
  if (status != LCOMM_OK) {
    snprintf(why, size, "%llu elements on %d ranks do not fit into memory",
             (unsigned long long)request->count, topo->size);
    return status;
  }
  snprintf(why, size, "out of memory while planning");
  status = copy_segments(plan, request);
  if (status != LCOMM_OK) {
    return status;
  }
  lcomm_plan_choose(plan, request, policy, topo);
  find_copies(plan, copies);
  status = lcomm_schedule_init(&plan->schedule, rank, topo->size, plan->vector_count);
  status = status == LCOMM_OK ? build(plan, topo) : status;
  status = status == LCOMM_OK ? lcomm_schedule_link(&plan->schedule, copies) : status;
  status = status == LCOMM_OK ? lcomm_plan_bound_slots(plan) : status;
  if (status != LCOMM_OK) {
    return status;
  }
  plan->hash = hash_plan(plan, policy, topo);
  return lcomm_schedule_verify(&plan->schedule, why, size);
}

lcomm_status lcomm_plan_create(const lcomm_plan_request *request, const lcomm_policy *policy,
                               const lcomm_topo *topo, int rank, lcomm_plan **plan, char *why,
                               size_t size) {
  lcomm_plan *made = calloc(1, sizeof(*made));
  if (!made) {
    snprintf(why, size, "out of memory while planning");
    return LCOMM_ERR_MEMORY;
  }
  made->collective = request->collective;
  made->dtype = request->dtype;
  made->count = request->count;
  made->root = request->root;
  made->lasting = request->lasting;
  made->checksum = policy->checksum;
  lcomm_status status = fill(made, request, policy, topo, rank, why, size);
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
  free(plan->segment_ends);
  free(plan->slot_bounds);
  free(plan);
}

bool lcomm_plan_fits(const lcomm_plan *plan, const lcomm_plan_request *request) {
  return plan->collective == request->collective && plan->count == request->count &&
         plan->dtype == request->dtype && plan->root == request->root;
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

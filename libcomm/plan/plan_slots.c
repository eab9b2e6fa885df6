/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How large the slots of a plan are, and the shapes of top-k encoders. */

#include <stdlib.h>

#include "kernels/stripe.h"
#include "libcomm/plan/select.h"

double lcomm_plan_density(const lcomm_plan *plan, lcomm_stage stage, uint64_t first, uint64_t end) {
  const lcomm_format *format = &plan->stages[stage].format;
  if (format->density > 0 || end == first) {
    return format->density;
  }
  double share = (double)format->kept / (double)(end - first);
  return share < 1.0 ? share : 1.0;
}

lcomm_status lcomm_plan_scratch_make(const lcomm_plan *plan, lcomm_segment_scratch *scratch) {
  scratch->ends = malloc((plan->segments + 1) * sizeof *scratch->ends);
  scratch->densities = malloc((plan->segments + 1) * sizeof *scratch->densities);
  if (scratch->ends && scratch->densities) {
    return LCOMM_OK;
  }
  lcomm_plan_scratch_free(scratch);
  return LCOMM_ERR_MEMORY;
}

void lcomm_plan_scratch_free(lcomm_segment_scratch *scratch) {
  free(scratch->ends);
  free(scratch->densities);
}

void lcomm_plan_topk_shape(const lcomm_plan *plan, lcomm_stage stage, lcomm_span span,
                           uint32_t outputs, const lcomm_segment_scratch *scratch,
                           lcomm_topk_shape *shape) {
  uint64_t last = span.first + span.count, first = 0;
  size_t segments = 0;
  for (size_t i = 0; i < plan->segments && first < last; i++) {
    uint64_t end = plan->segment_ends[i];
    if (end > span.first) {
      scratch->ends[segments] = (end < last ? end : last) - span.first;
      scratch->densities[segments++] = lcomm_plan_density(plan, stage, first, end);
    }
    first = end;
  }
  if (segments == 0) { /* no tensors, or nothing in the span */
    scratch->ends[0] = span.count;
    scratch->densities[segments++] = lcomm_plan_density(plan, stage, 0, plan->vector_count);
  }
  *shape = (lcomm_topk_shape){.format = &plan->stages[stage].format,
                              .base_count = span.count,
                              .parts = span.parts,
                              .part = span.part,
                              .outputs = outputs,
                              .segment_ends = scratch->ends,
                              .segment_densities = scratch->densities,
                              .segments = segments};
}

static uint64_t topk_total(const lcomm_topk_shape *shape) {
  uint64_t total = 0, before = 0;
  for (size_t i = 0; i < shape->segments; i++) {
    uint64_t here = lcomm_stripe_count(shape->segment_ends[i], shape->parts, shape->part);
    total += lcomm_topk_entries(shape->segment_densities[i], here - before);
    before = here;
  }
  return total;
}

/* All entries of a selection may go to one of the parts that are sent, which are all but one. */
static void bound_sparse(lcomm_plan *plan, uint32_t slot, const lcomm_topk_shape *shape) {
  uint64_t total = topk_total(shape), count = plan->schedule.slots[slot].count, share = total;
  uint64_t most = lcomm_topk_capacity(total, shape->outputs, count);
  if (shape->outputs > 1) {
    share = (total + shape->outputs - 2) / (shape->outputs - 1);
  }
  plan->slot_sizes[slot].bound = lcomm_topk_bound(shape->format, most, count);
  plan->slot_sizes[slot].share =
      lcomm_topk_bound(shape->format, share < most ? share : most, count);
}

/* Bound of slot `slot`, which stands for the view `span` split over `outputs`. */
static void bound_slot(lcomm_plan *plan, uint32_t slot, lcomm_span span, uint32_t outputs,
                       const lcomm_segment_scratch *scratch) {
  const lcomm_slot *it = &plan->schedule.slots[slot];
  const lcomm_format *format = &plan->stages[it->stage].format;
  lcomm_topk_shape shape;
  if (!lcomm_format_is_sparse(format)) {
    plan->slot_sizes[slot].bound = plan->slot_sizes[slot].share =
        lcomm_payload_size(format, it->count);
    return;
  }
  lcomm_plan_topk_shape(plan, it->stage, span, outputs, scratch, &shape);
  bound_sparse(plan, slot, &shape);
}

static void bound_slots_of_step(lcomm_plan *plan, const lcomm_step *step,
                                const lcomm_segment_scratch *scratch) {
  if (step->kind == LCOMM_STEP_ENCODE) {
    for (uint32_t i = 0; i < step->slot_count; i++) {
      bound_slot(plan, step->slot + i, step->span, step->slot_count, scratch);
    }
    return;
  }
  if (step->kind == LCOMM_STEP_DECODE) {
    bound_slot(plan, step->slot, step->span, 1, scratch);
    return;
  }
  if (step->kind != LCOMM_STEP_REDUCE) {
    return;
  }
  /* Contributions to a stripe are outputs of a selection over the whole. */
  lcomm_span whole = lcomm_span_whole(step->span.first, step->span.count);
  for (uint32_t i = 0; i < step->slot_count; i++) {
    uint32_t slot = plan->schedule.sources[step->sources + i];
    if (slot != LCOMM_SOURCE_SELF) {
      bound_slot(plan, slot, whole, step->span.parts, scratch);
    }
  }
}

/* Payloads are the elements as they are. */
static void bound_plain(lcomm_plan *plan) {
  for (uint32_t i = 0; i < plan->schedule.slot_count; i++) {
    plan->slot_sizes[i].bound = plan->slot_sizes[i].share =
        plan->schedule.slots[i].count * plan->element_size;
  }
}

static lcomm_status bound_coded(lcomm_plan *plan) {
  lcomm_segment_scratch scratch;
  if (lcomm_plan_scratch_make(plan, &scratch) != LCOMM_OK) {
    return LCOMM_ERR_MEMORY;
  }
  for (uint32_t i = 0; i < plan->schedule.step_count; i++) {
    bound_slots_of_step(plan, &plan->schedule.steps[i], &scratch);
  }
  lcomm_plan_scratch_free(&scratch);
  return LCOMM_OK;
}

/* May all slots be counted together, with what a run adds to them, without
 * running over? */
static bool can_be_summed(const lcomm_plan *plan) {
  size_t left = SIZE_MAX / 8;
  for (uint32_t i = 0; i < plan->schedule.slot_count; i++) {
    if (plan->slot_sizes[i].bound > left) {
      return false;
    }
    left -= plan->slot_sizes[i].bound;
  }
  return true;
}

void lcomm_plan_place_slots(lcomm_plan *plan) {
  for (uint32_t i = 0; i < plan->schedule.slot_count; i++) {
    const lcomm_slot *slot = &plan->schedule.slots[i];
    size_t *memory = &plan->slot_sizes[slot->place].memory; /* place <= i */
    size_t own = slot->alias.count == 0 ? plan->slot_sizes[i].bound : 0;
    plan->slot_sizes[i].memory = 0;
    *memory = own > *memory ? own : *memory;
  }
}

lcomm_status lcomm_plan_bound_slots(lcomm_plan *plan) {
  size_t slots = (size_t)plan->schedule.slot_count + 1;
  plan->slot_sizes = calloc(slots, sizeof *plan->slot_sizes);
  if (!plan->slot_sizes) {
    return LCOMM_ERR_MEMORY;
  }
  if (plan->plain) {
    bound_plain(plan);
  } else if (bound_coded(plan) != LCOMM_OK) {
    return LCOMM_ERR_MEMORY;
  }
  lcomm_plan_place_slots(plan);
  return can_be_summed(plan) ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

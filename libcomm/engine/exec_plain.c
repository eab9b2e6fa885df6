/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sums, minima and maxima of plans without a codec, straight from where the
 * sources are: in this rank's vector, in a slot, in mapped memory of a peer, or
 * in remote memory of a peer, got piece by piece.
 */

#include "kernels/plain.h"
#include "kernels/stripe.h"
#include "libcomm/engine/exec_internal.h"

static lcomm_plain_op plain_op(lcomm_op op) {
  if (op == LCOMM_MIN) {
    return LCOMM_PLAIN_MIN;
  }
  return op == LCOMM_MAX ? LCOMM_PLAIN_MAX : LCOMM_PLAIN_SUM;
}

void lcomm_exec_scale(const lcomm_run *run, double factor, void *values, size_t n) {
  if (lcomm_factor_is_one(factor)) {
    return;
  }
  if (run->plan->dtype == LCOMM_FLOAT32) {
    run->comm->kernels->f32_scale(values, (float)factor, values, n);
  } else if (run->plan->dtype == LCOMM_FLOAT64) {
    lcomm_plain_scale_f64(values, factor, n);
  } /* integers are divided by who started the operation */
}

/* The sources of elements at .. at+n of the step's span, where they can be read. */
static lcomm_status get_sources(lcomm_run *run, const lcomm_step *step, uint64_t at, size_t n,
                                uint8_t *destination) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  size_t element = run->plan->element_size;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    run->scratch.sources[i] = destination;
    if (sources[i] == LCOMM_SOURCE_SELF) {
      continue;
    }
    const lcomm_slot_memory *slot = &run->slots[sources[i]];
    run->scratch.sources[i] = slot->payload + at * element;
    LCOMM_ASSERT(slot->state == LCOMM_PAYLOAD_REMOTE || lcomm_payload_is_readable(slot));
    if (slot->state == LCOMM_PAYLOAD_REMOTE) {
      uint8_t *tile = run->comm->runs.tiles + (size_t)i * LCOMM_GET_SIZE;
      run->scratch.sources[i] = tile;
      LCOMM_TRY(lcomm_exec_get(run, sources[i], at * element, n * element, tile));
    }
  }
  return LCOMM_OK;
}

void lcomm_exec_add_plain(const lcomm_run *run, const void *const *sources, size_t count,
                          void *destination, size_t n) {
  const lcomm_plan *plan = run->plan;
  if (plan->dtype == LCOMM_FLOAT32 && plain_op(plan->op) == LCOMM_PLAIN_SUM) {
    run->comm->kernels->f32_sum((const float *const *)sources, count, destination, n);
  } else {
    lcomm_plain_kernel_of(plan->dtype, plain_op(plan->op))(sources, count, destination, n);
  }
}

static void add_up(lcomm_run *run, const lcomm_step *step, uint8_t *destination, size_t n) {
  lcomm_exec_add_plain(run, run->scratch.sources, step->slot_count, destination, n);
  if (step->summed) {
    lcomm_exec_scale(run, run->factor, destination, n);
  }
}

static bool any_is_remote(const lcomm_run *run, const lcomm_step *step) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    if (sources[i] != LCOMM_SOURCE_SELF && run->slots[sources[i]].state == LCOMM_PAYLOAD_REMOTE) {
      return true;
    }
  }
  return false;
}

/* One block of a sum stays in the first-level cache while all sources are added
 * to it: one pass over the vector, however many sources there are. What is
 * remote comes in pieces that stay in the second-level cache. */
lcomm_status lcomm_exec_reduce_plain(lcomm_run *run, const lcomm_step *step) {
  size_t element = run->plan->element_size;
  uint64_t block = (any_is_remote(run, step) ? LCOMM_GET_SIZE : 4 * LCOMM_TILE) / element;
  for (uint64_t at = 0; at < step->span.count; at += block) {
    uint64_t left = step->span.count - at;
    size_t n = (size_t)(left < block ? left : block);
    uint8_t *destination = lcomm_run_at(run, step->span.first + at);
    LCOMM_TRY(get_sources(run, step, at, n, destination));
    add_up(run, step, destination, n);
  }
  return LCOMM_OK;
}

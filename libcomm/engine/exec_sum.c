/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sums of the executor: the step REDUCE. */

#include <string.h>

#include "codecs/codec_residual.h"
#include "kernels/plain.h"
#include "kernels/stripe.h"
#include "libcomm/engine/exec_internal.h"

static void reduce_sparse(lcomm_run *run, const lcomm_step *step, float factor) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  float *destination = lcomm_run_floats(run, step->span.first);
  const lcomm_format *format = lcomm_run_format(run, sources[0]);
  lcomm_topk_decode(format, run->slots[sources[0]].payload, step->span.count, step->span.parts,
                    step->span.part, factor, destination);
  for (uint32_t i = 1; i < step->slot_count; i++) {
    lcomm_topk_add(format, run->slots[sources[i]].payload, step->span.parts, step->span.part,
                   factor, destination);
  }
}

/* Is it a sum of what top-k has selected? */
static bool is_sparse(const lcomm_run *run, const lcomm_step *step) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  uint32_t other = sources[0] == LCOMM_SOURCE_SELF && step->slot_count > 1 ? 1 : 0;
  return sources[other] != LCOMM_SOURCE_SELF && lcomm_run_is_sparse(run, sources[other]);
}

/* Selections onto the rank's own part, which is whole. */
static void add_sparse(lcomm_run *run, const lcomm_step *step, float factor) {
  const lcomm_kernels *kernels = run->comm->kernels;
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  float *destination = lcomm_run_floats(run, step->span.first);
  kernels->f32_scale(destination, factor, destination, step->span.count);
  for (uint32_t i = 0; i < step->slot_count; i++) {
    if (sources[i] != LCOMM_SOURCE_SELF) {
      lcomm_topk_add(lcomm_run_format(run, sources[i]), run->slots[sources[i]].payload,
                     step->span.parts, step->span.part, factor, destination);
    }
  }
}

/* My own part joins unquantised. Its momentum is not masked: it is that of a sum that travels
 * exactly. */
static void join(lcomm_run *run, const lcomm_step *step) {
  const lcomm_kernels *kernels = run->comm->kernels;
  float *residual = lcomm_run_residual(run, step), *momentum = lcomm_run_momentum(run, step);
  float *values = lcomm_run_floats(run, step->span.first);
  if (step->feedback != LCOMM_FEEDBACK_KEEP) {
    return;
  }
  if (momentum) {
    kernels->ef.f32_momentum(run->feedback->momentum_factor, momentum, values, step->span.count);
  }
  if (residual) {
    lcomm_residual_fold(kernels, values, residual, step->span.count);
  }
}

const lcomm_step *lcomm_exec_encode_after(const lcomm_run *run, const lcomm_step *sum) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  if (sum->next_count == 0) {
    return NULL;
  }
  uint32_t index = schedule->next[sum->next_first];
  const lcomm_step *next = &schedule->steps[index];
  bool fits = next->kind == LCOMM_STEP_ENCODE && run->steps.waiting[index] == 1 &&
              next->slot_count == 1 && next->span.parts == 1 &&
              next->span.first == sum->span.first && next->span.count == sum->span.count;
  if (!fits || lcomm_run_is_sparse(run, next->slot) ||
      lcomm_slot_is(&run->slots[next->slot], LCOMM_SLOT_ALIAS) || lcomm_run_residual(run, next)) {
    return NULL;
  }
  return next;
}

static void sum_coded(lcomm_run *run, const lcomm_step *step, float factor) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  float *destination = lcomm_run_floats(run, step->span.first);
  for (uint32_t i = 0; i < step->slot_count; i++) {
    bool self = sources[i] == LCOMM_SOURCE_SELF;
    run->scratch.summands[i] =
        (lcomm_summand){.format = self ? NULL : lcomm_run_format(run, sources[i]),
                        .payload = self ? NULL : run->slots[sources[i]].payload,
                        .values = destination};
  }
  lcomm_range all = lcomm_range_whole(step->span.count);
  const lcomm_step *next = lcomm_exec_encode_after(run, step);
  if (!next) {
    lcomm_sum(run->comm->kernels, run->scratch.summands, step->slot_count, all, factor,
              destination);
    return;
  }
  lcomm_slot_memory *memory = &run->slots[next->slot];
  lcomm_sum_encode(run->comm->kernels, run->scratch.summands, step->slot_count, all, factor,
                   destination, lcomm_run_format(run, next->slot), lcomm_run_seed(run, next->slot),
                   memory->payload);
  lcomm_payload_encoded(memory);
}

/* Minima and maxima of 16-bit buffers, whose payloads hold every value exactly.
 * The sources keep their order, because it decides between two NaNs. */
static void combine_coded(lcomm_run *run, const lcomm_step *step) {
  enum { PIECE = 1024 };
  _Alignas(64) float first[PIECE], next[PIECE];
  const void *both[2] = {first, next};
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  lcomm_plain_kernel combine = lcomm_plain_kernel_of(
      LCOMM_FLOAT32, run->plan->op == LCOMM_MIN ? LCOMM_PLAIN_MIN : LCOMM_PLAIN_MAX);
  for (uint64_t at = 0; at < step->span.count; at += PIECE) {
    uint64_t left = step->span.count - at;
    lcomm_range range = {step->span.count, at, left < PIECE ? left : PIECE};
    float *destination = lcomm_run_floats(run, step->span.first + at);
    for (uint32_t i = 0; i < step->slot_count; i++) {
      float *values = i == 0 ? first : next;
      if (sources[i] == LCOMM_SOURCE_SELF) {
        memcpy(values, destination, range.n * sizeof(float));
      } else {
        lcomm_decode(lcomm_run_format(run, sources[i]), run->comm->kernels,
                     run->slots[sources[i]].payload, range, 1.0f, values);
      }
      if (i > 0) {
        combine(both, 2, first, range.n);
      }
    }
    memcpy(destination, first, range.n * sizeof(float));
  }
}

lcomm_status lcomm_exec_reduce(lcomm_run *run, const lcomm_step *step) {
  if (lcomm_run_is_plain(run)) {
    return lcomm_exec_reduce_plain(run, step);
  }
  if (run->plan->op != LCOMM_SUM) {
    combine_coded(run, step);
    return LCOMM_OK;
  }
  float factor = step->summed ? (float)run->factor : 1.0f;
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  bool sparse = is_sparse(run, step), has_self = false;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    has_self |= sources[i] == LCOMM_SOURCE_SELF;
  }
  join(run, step);
  if (sparse) {
    (has_self ? add_sparse : reduce_sparse)(run, step, factor);
    return LCOMM_OK;
  }
  sum_coded(run, step, factor);
  return LCOMM_OK;
}

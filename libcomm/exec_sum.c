/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sums of the executor: the step REDUCE. */

#include "codecs/residual.h"
#include "kernels/stripe.h"
#include "libcomm/exec_internal.h"

static void reduce_sparse(lcomm_run *run, const lcomm_step *step, float factor) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  float *destination = run->vector + step->span.first;
  const lcomm_format *format = lcomm_run_format(run, sources[0]);
  lcomm_topk_decode(format, run->slots[sources[0]].payload, step->span.count, step->span.parts,
                    step->span.part, factor, destination);
  for (uint32_t i = 1; i < step->slot_count; i++) {
    lcomm_topk_add(format, run->slots[sources[i]].payload, step->span.parts, step->span.part,
                   factor, destination);
  }
}

/* Plain float32 sources are summed where they lie. */
static bool sums_in_place(const lcomm_run *run, const lcomm_step *step) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    if (sources[i] != LCOMM_SOURCE_SELF &&
        lcomm_run_format(run, sources[i])->codec->id != LCOMM_CODEC_NONE) {
      return false;
    }
  }
  return true;
}

/* One block of a sum stays in the first-level cache while all sources are
 * added to it: one pass over the vector, however many sources there are. */
static void sum_plain_block(lcomm_run *run, const lcomm_step *step, uint64_t at, uint64_t n,
                            float factor) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  float *destination = run->vector + step->span.first + at;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    run->reduce_sources[i] = destination;
    if (sources[i] != LCOMM_SOURCE_SELF) {
      run->reduce_sources[i] = (const float *)(const void *)run->slots[sources[i]].payload + at;
    }
  }
  run->comm->kernels->f32_sum(run->reduce_sources, step->slot_count, destination, n);
  if (factor != 1.0f) {
    run->comm->kernels->f32_scale(destination, factor, destination, n);
  }
}

static void sum_plain(lcomm_run *run, const lcomm_step *step, float factor) {
  for (uint64_t at = 0; at < step->span.count; at += LCOMM_TILE) {
    uint64_t left = step->span.count - at;
    sum_plain_block(run, step, at, left < LCOMM_TILE ? left : LCOMM_TILE, factor);
  }
}

/* The ENCODE that waits for nothing but this sum and reads just its span: a
 * tile is encoded while it is still in the cache. NULL when there is none. */
static const lcomm_step *encode_after(const lcomm_run *run, const lcomm_step *sum) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  if (sum->next_count == 0) {
    return NULL;
  }
  const lcomm_step *next = &schedule->steps[schedule->next[sum->next_first]];
  bool fits = next->kind == LCOMM_STEP_ENCODE && next->waits_for == 1 && next->slot_count == 1 &&
              next->span.parts == 1 && next->span.first == sum->span.first &&
              next->span.count == sum->span.count;
  if (!fits || lcomm_run_is_sparse(run, next->slot) || run->slots[next->slot].shares_vector ||
      lcomm_run_residual(run, next)) {
    return NULL;
  }
  return next;
}

static void sum_coded(lcomm_run *run, const lcomm_step *step, float factor) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  float *destination = run->vector + step->span.first;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    bool self = sources[i] == LCOMM_SOURCE_SELF;
    run->reduce_summands[i] =
        (lcomm_summand){.format = self ? NULL : lcomm_run_format(run, sources[i]),
                        .payload = self ? NULL : run->slots[sources[i]].payload,
                        .values = destination};
  }
  lcomm_range all = lcomm_range_whole(step->span.count);
  const lcomm_step *next = encode_after(run, step);
  if (!next) {
    lcomm_sum(run->comm->kernels, run->reduce_summands, step->slot_count, all, factor, destination);
    return;
  }
  lcomm_slot_memory *memory = &run->slots[next->slot];
  lcomm_sum_encode(run->comm->kernels, run->reduce_summands, step->slot_count, all, factor,
                   destination, lcomm_run_format(run, next->slot), lcomm_run_seed(run, next->slot),
                   memory->payload);
  memory->encoded = true;
}

void lcomm_exec_reduce(lcomm_run *run, const lcomm_step *step) {
  float factor = step->summed ? run->factor : 1.0f;
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  if (sources[0] != LCOMM_SOURCE_SELF && lcomm_run_is_sparse(run, sources[0])) {
    reduce_sparse(run, step, factor);
    return;
  }
  float *residual = lcomm_run_residual(run, step);
  if (residual && step->feedback == LCOMM_FEEDBACK_KEEP) {
    lcomm_residual_fold(run->comm->kernels, run->vector + step->span.first, residual,
                        step->span.count);
  }
  if (sums_in_place(run, step)) {
    sum_plain(run, step, factor);
  } else {
    sum_coded(run, step, factor);
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Samples of the guard: where they lie, what goes into a sum there, what comes out. */

#include "libcomm/base/assert.h"
#include "libcomm/engine/backend.h"
#include "libcomm/plan/milder.h"
#include "libcomm/tensor/bucket.h"

/* ------------------------------------------------------------------ where */

static uint64_t smaller(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* Up to half of 1 % goes to all tensors alike, the rest in proportion to their elements. */
uint64_t lcomm_guard_sample_count(uint64_t count, unsigned lanes, uint64_t all_count, size_t all) {
  uint64_t budget = all_count / 100 / lanes;
  uint64_t alike = smaller(budget / 2 / all, LCOMM_GUARD_SAMPLE_MIN);
  double share = (double)(budget - all * alike) * (double)count / (double)all_count;
  return smaller(smaller(alike + (uint64_t)share, LCOMM_GUARD_SAMPLE_MAX), count);
}

unsigned lcomm_guard_lanes(const lcomm_guard_share *share) {
  return 1u + share->has_residual + lcomm_ef_scatters(share->ef);
}

lcomm_sample lcomm_guard_sample_of(uint64_t count, uint64_t elements) {
  lcomm_sample sample = {.count = count, .block = (uint32_t)smaller(count, LCOMM_GUARD_BLOCK)};
  sample.blocks = sample.block > 0 ? elements / sample.block : 0;
  sample.blocks += sample.blocks == 0 && count > 0;
  return sample;
}

void lcomm_guard_sample_draw(lcomm_guard_share *share, uint64_t step) {
  share->sample.seed = step << 24 ^ share->number;
}

/* ----------------------------------------------------------------- taking */

/* Of an array that has an element for each one that this rank keeps: those of before the step,
 * which has begun. */
static lcomm_status add_kept(const lcomm_guard_share *share, lcomm_run *run, lcomm_sampling *it,
                             const lcomm_ef_array *array) {
  const lcomm_feedback_state *feedback = lcomm_ef_works_with(share->ef, run);
  for (int i = 0; i < lcomm_ef_part_count(share->ef); i++) {
    lcomm_span part = lcomm_ef_part(share->ef, feedback, i);
    it->first = part.first;
    it->count = part.count;
    it->values = lcomm_ef_array_at(*array, part.first - feedback->first).before;
    LCOMM_TRY(part.count > 0 ? run->backend->vectors->sample_add(run, it) : LCOMM_OK);
  }
  return LCOMM_OK;
}

/* This rank keeps residuals and momentum of some elements, or none. */
static lcomm_status take_feedback(const lcomm_guard_share *share, lcomm_run *run,
                                  lcomm_sampling *it) {
  const lcomm_feedback_state *feedback = lcomm_ef_works_with(share->ef, run);
  it->first = it->count = 0;
  it->destination = share->staged.residual;
  LCOMM_TRY(run->backend->vectors->sample(run, it));
  if (!feedback) {
    return LCOMM_OK;
  }
  LCOMM_TRY(add_kept(share, run, it, &feedback->residual));
  it->factor = feedback->momentum_factor;
  it->destination = share->staged.gradient;
  return feedback->momentum.now ? add_kept(share, run, it, &feedback->momentum) : LCOMM_OK;
}

static lcomm_sampling sampling_of(const lcomm_guard_share *share, const void *vector) {
  return (lcomm_sampling){.sample = share->sample,
                          .values = vector,
                          .count = share->ef->request.count,
                          .offset = share->offset,
                          .factor = 1};
}

/* What it travels by. Low rank is no codec of the run. */
static lcomm_codec_spec codec_of(const lcomm_guard_share *share, const lcomm_run *run) {
  const lcomm_plan *plan = run->plan;
  if (lcomm_ef_lowrank_is_first(share->ef, run)) {
    return lcomm_ef_lowrank_codec(share->ef);
  }
  return *lcomm_farthest_codec(&plan->stages[LCOMM_STAGE_NET], &plan->stages[LCOMM_STAGE_NODE],
                               run->comm->topo.nodes);
}

lcomm_status lcomm_guard_take_share(lcomm_guard_share *share, lcomm_run *run, const void *vector,
                                    uint64_t step) {
  lcomm_guard_sample_draw(share, step);
  lcomm_sampling it = sampling_of(share, vector);
  it.destination = share->staged.gradient;
  share->taken = true;
  share->step = step;
  share->by = codec_of(share, run);
  LCOMM_TRY(run->backend->vectors->sample(run, &it));
  return share->has_residual ? take_feedback(share, run, &it) : LCOMM_OK;
}

static bool is_lossy(const lcomm_bucket *bucket, const lcomm_run *run) {
  return run->plan->lossy || lcomm_ef_lowrank_is_first(&bucket->ef, run) ||
         lcomm_ef_lowrank_is_second(&bucket->ef, run);
}

static bool looks_at(const lcomm_bucket *bucket, const lcomm_run *run) {
  return bucket->comm->tensors->guard && bucket->tensors[0]->guarded.share &&
         lcomm_guard_is_due(bucket->comm) && is_lossy(bucket, run);
}

lcomm_status lcomm_guard_take(lcomm_bucket *bucket, lcomm_run *run, const void *vector) {
  for (size_t i = 0; looks_at(bucket, run) && i < bucket->tensor_count; i++) {
    LCOMM_TRY(lcomm_guard_take_share(bucket->tensors[i]->guarded.share, run, vector,
                                     bucket->comm->deferred.step));
  }
  return LCOMM_OK;
}

/* ---------------------------------------------------------------- keeping */

/* In units of contributions, of averages too. Of a reduce-scatter this rank has its part, and zeros
 * of the others. */
lcomm_status lcomm_guard_keep_share(const lcomm_guard_share *share, lcomm_run *run,
                                    const void *vector) {
  const lcomm_ef *ef = share->ef;
  lcomm_sampling it = sampling_of(share, vector);
  LCOMM_ASSERT(share->taken);
  if (lcomm_ef_scatters(ef)) {
    it.first = ef->result.first;
    it.count = ef->result.count;
    it.values = (const float *)vector + ef->result.first;
  }
  it.factor = lcomm_ef_units(ef);
  it.destination = share->staged.result;
  *share->waited = 0;
  return run->backend->vectors->sample(run, &it);
}

static lcomm_tensor *tensor_at(const lcomm_bucket *bucket, uint64_t at) {
  size_t index = 0;
  while (at >= bucket->tensors[index]->offset + bucket->tensors[index]->count) {
    index++;
  }
  return bucket->tensors[index];
}

/* Only where a whole span is split over owners can entries find no room. With scope=bucket they
 * count for the tensor that the span begins in. */
static void count_waiting(const lcomm_bucket *bucket, const lcomm_run *run, uint32_t index) {
  const lcomm_topk *encoder = run->codecs.encoders[index];
  uint64_t first = run->plan->schedule.steps[index].span.first;
  for (size_t i = 0; encoder && i < lcomm_topk_segments(encoder); i++) {
    uint64_t count = 0, kept = 0, waited = lcomm_topk_segment_waited(encoder, i);
    lcomm_topk_segment_get(encoder, i, &count, &kept);
    if (waited > 0) {
      *tensor_at(bucket, first)->guarded.share->waited += (float)waited;
    }
    first += count;
  }
}

lcomm_status lcomm_guard_keep(lcomm_bucket *bucket, lcomm_run *run, const void *vector) {
  if (!looks_at(bucket, run)) {
    return LCOMM_OK;
  }
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    LCOMM_TRY(lcomm_guard_keep_share(bucket->tensors[i]->guarded.share, run, vector));
  }
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    count_waiting(bucket, run, i);
  }
  if (!run->backend->is_host) { /* whose encoders know no tensors */
    *bucket->tensors[0]->guarded.share->waited = (float)run->stats.topk_waited;
  }
  return LCOMM_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Samples of the guard: where they lie, what goes into a sum there, what comes out. */

#include "kernels/element.h"
#include "libcomm/base/assert.h"
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

void lcomm_guard_share_size(lcomm_guard_share *share, uint64_t count, uint64_t sample) {
  share->count = count;
  share->block = (uint32_t)smaller(count, LCOMM_GUARD_BLOCK);
  share->blocks = share->block > 0 ? sample / share->block : 0;
  share->blocks += share->blocks == 0 && count > 0;
}

/* Somewhere in part `index` of the tensor. */
uint64_t lcomm_guard_block_begin(const lcomm_guard_share *share, uint64_t step, uint64_t index) {
  uint64_t part = share->count / share->blocks, rest = share->count % share->blocks;
  uint64_t first = index * part + smaller(index, rest);
  uint64_t places = part + (index < rest) - share->block + 1;
  uint64_t seed = step << 24 ^ share->number;
  return first + lcomm_random(seed, index) * places / ((uint64_t)UINT32_MAX + 1);
}

/* ----------------------------------------------------------------- taking */

/* Of elements first .. first+n of the vector this rank keeps residuals and momentum, or not: those
 * of before the step, which has begun. */
static void take_feedback(const lcomm_guard_share *share, const lcomm_feedback_state *feedback,
                          uint64_t first, uint64_t to) {
  float *residuals = share->sums + lcomm_guard_share_elements(share);
  for (uint32_t i = 0; i < share->block; i++) {
    uint64_t at = first + i - feedback->first;
    if (at >= feedback->count) { /* so is one before the first */
      continue;
    }
    residuals[to + i] = *lcomm_ef_array_at(feedback->residual, at).before;
    if (feedback->momentum.now) {
      share->sums[to + i] +=
          feedback->momentum_factor * *lcomm_ef_array_at(feedback->momentum, at).before;
    }
  }
}

static void take(lcomm_guard_share *share, const float *vector, const lcomm_run *run,
                 uint64_t step) {
  uint64_t offset = share->tensor->offset, elements = lcomm_guard_share_elements(share);
  for (uint64_t i = 0; share->has_residual && i < elements; i++) {
    share->sums[elements + i] = 0;
  }
  for (uint64_t i = 0; i < share->blocks; i++) {
    uint64_t first = offset + lcomm_guard_block_begin(share, step, i), to = i * share->block;
    for (uint32_t j = 0; j < share->block; j++) {
      share->sums[to + j] = vector[first + j];
    }
    if (share->has_residual && run->feedback) {
      take_feedback(share, run->feedback, first, to);
    }
  }
  share->taken = true;
}

static bool looks_at(const lcomm_bucket *bucket, const lcomm_run *run) {
  return bucket->comm->tensors->guard && bucket->tensors[0]->guarded.share &&
         lcomm_guard_is_due(bucket->comm) && run->plan->lossy;
}

void lcomm_guard_take(lcomm_bucket *bucket, const lcomm_run *run, const void *vector) {
  if (!looks_at(bucket, run)) {
    return;
  }
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    take(bucket->tensors[i]->guarded.share, vector, run, bucket->comm->deferred.step);
  }
}

/* ---------------------------------------------------------------- keeping */

/* In units of contributions, of averages too. */
static void keep(lcomm_guard_share *share, const float *vector, float units, uint64_t step) {
  for (uint64_t i = 0; i < share->blocks; i++) {
    uint64_t first = share->tensor->offset + lcomm_guard_block_begin(share, step, i);
    for (uint32_t j = 0; j < share->block; j++) {
      share->results[i * share->block + j] = units * vector[first + j];
    }
  }
  *share->waited = 0;
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

void lcomm_guard_keep(lcomm_bucket *bucket, const lcomm_run *run, const void *vector) {
  if (!looks_at(bucket, run)) {
    return;
  }
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    LCOMM_ASSERT(bucket->tensors[i]->guarded.share->taken);
    keep(bucket->tensors[i]->guarded.share, vector, lcomm_ef_units(&bucket->ef),
         bucket->comm->deferred.step);
  }
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    count_waiting(bucket, run, i);
  }
}

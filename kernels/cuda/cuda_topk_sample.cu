/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The sample of top-k: a threshold for each segment that is surely low, but not by
 * much. It decides the time, never the result. */

#include "kernels/cuda/cuda_topk_digits.cuh"

typedef struct sample_args {
  lcomm_topk_tables t;
  const float *base, *before; /* the latter may be NULL */
  lcomm_topk_step step;
  uint32_t index; /* of the step: two there are */
} sample_args;

/* Lines of a few neighbours, one in each of so many equal strata, at a place in it
 * that a hash chooses, so that periodic data does not mislead. */
typedef struct sample {
  uint32_t begin;
  uint64_t stratum; /* lines, in units of 2^-32 */
} sample;

LCOMM_DEVICE sample sample_of(const lcomm_cuda_segment *segment) {
  uint32_t begin = (segment->first + LCOMM_TOPK_LINE - 1) / LCOMM_TOPK_LINE * LCOMM_TOPK_LINE;
  uint64_t lines = (segment->first + segment->count - begin) / LCOMM_TOPK_LINE;
  sample s = {begin, (lines << 32) / segment->lines};
  return s;
}

LCOMM_DEVICE uint32_t sampled(const sample *s, uint64_t i) {
  uint64_t line = i / LCOMM_TOPK_LINE, hash = (line + 1) * 0x9e3779b97f4a7c15u >> 32;
  uint64_t first = line * s->stratum >> 32, end = (line + 1) * s->stratum >> 32;
  uint64_t place = first + (hash * (end - first) >> 32);
  return s->begin + (uint32_t)(place * LCOMM_TOPK_LINE + i % LCOMM_TOPK_LINE);
}

LCOMM_DEVICE float accumulate(const float *base, const float *before, uint64_t global) {
  return !before ? base[global] : lcomm_sum_f32(base[global], before[global]);
}

enum {
  AHEAD = 4, /* loads of a thread */
  BLOCK_LINES = AHEAD * LCOMM_TOPK_THREADS / LCOMM_TOPK_LINE
};

/* Blocks that look at the sample of a segment. */
LCOMM_DEVICE uint32_t blocks_of(const lcomm_cuda_segment *segment) {
  uint64_t blocks = ((uint64_t)segment->lines + BLOCK_LINES - 1) / BLOCK_LINES;
  return lcomm_topk_at_most(blocks, segment->spans);
}

/* Counts this block's part of the sample, several loads at a time. */
LCOMM_DEVICE void count_sample(const sample_args *a, const lcomm_cuda_segment *segment,
                               uint64_t known, lcomm_topk_histogram *h) {
  sample s = sample_of(segment);
  lcomm_topk_range lines =
      lcomm_topk_part_of(segment->lines, lcomm_block() - segment->first_span, blocks_of(segment));
  uint64_t end = lines.end * LCOMM_TOPK_LINE;
  for (uint64_t i = lines.begin * LCOMM_TOPK_LINE + lcomm_thread(); i < end;
       i += AHEAD * LCOMM_TOPK_THREADS) {
    float value[AHEAD];
    LCOMM_UNROLL for (uint32_t j = 0; j < AHEAD; j++) {
      uint64_t at = i + j * LCOMM_TOPK_THREADS;
      uint32_t local = sampled(&s, at < end ? at : i);
      value[j] = accumulate(a->base, a->before, lcomm_topk_global(&a->t, local));
    }
    LCOMM_UNROLL for (uint32_t j = 0; j < AHEAD; j++) {
      if (i + j * LCOMM_TOPK_THREADS < end) {
        lcomm_topk_count(h, a->step, known, (uint64_t)lcomm_topk_magnitude(value[j]) << 32);
      }
    }
  }
}

/* Magnitudes of the candidates. Zeros are none: nobody has to look for them. And
 * no NaN is chosen over Inf before it is known that there are enough of them. */
LCOMM_DEVICE uint32_t threshold(uint64_t key) {
  uint32_t least = (uint32_t)(key >> 32);
  least = least < 1 ? 1 : least;
  return least < LCOMM_F32_INF_BITS ? least : LCOMM_F32_INF_BITS;
}

/* By one thread, before anything is known. */
LCOMM_DEVICE void open_search(const lcomm_cuda_segment *segment, lcomm_topk_search *search) {
  search->found = 0;
  search->placed = 0;
  if (segment->lines == 0) {
    search->least = segment->kept == 0 ? UINT32_MAX : 0;
  }
}

/* One step; the sought element is as good as found after the second. */
LCOMM_KERNEL(topk_sample, sample_args) {
  LCOMM_SHARED lcomm_topk_histogram h;
  const lcomm_cuda_segment *segment = &a.t.segment[a.t.span_segment[lcomm_block()]];
  lcomm_topk_search *search = &a.t.search[a.t.span_segment[lcomm_block()]];
  if (a.index == 0 && lcomm_block() == segment->first_span && lcomm_thread() == 0) {
    open_search(segment, search);
  }
  if (a.index == 0 && lcomm_block() == 0 && lcomm_thread() == 0) {
    *a.t.misled = 0;
  }
  if (lcomm_block() - segment->first_span >= blocks_of(segment)) {
    return;
  }
  uint64_t known = a.index == 0 ? 0 : search->key;
  uint32_t rank = a.index == 0 ? segment->rank : search->rank;
  lcomm_topk_clear(&h);
  lcomm_sync_block();
  count_sample(&a, segment, known, &h);
  if (!lcomm_topk_gather(&a.t, segment, search, blocks_of(segment), &h)) {
    return;
  }
  lcomm_topk_find(&h, rank);
  if (lcomm_thread() == 0) {
    search->key = known | (uint64_t)h.digit << a.step.shift;
    search->rank = h.rank;
    search->least = threshold(search->key);
  }
}

extern "C" int lcomm_cuda_topk_sample(const lcomm_cuda_topk *topk, const lcomm_topk_job *job,
                                      void *stream) {
  for (uint32_t i = 0; i < 2; i++) {
    sample_args args = {topk->tables, job->base, job->before, topk->step[i], i};
    int error = LCOMM_LAUNCH(topk_sample, topk->spans, LCOMM_TOPK_THREADS, stream, args);
    if (error != 0) {
      return error;
    }
  }
  return 0;
}

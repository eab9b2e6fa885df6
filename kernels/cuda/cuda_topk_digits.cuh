/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_TOPK_DIGITS_CUH
#define LCOMM_KERNELS_CUDA_CUDA_TOPK_DIGITS_CUH

/* Radix selection: the rank-th greatest of keys, a digit at a time. A histogram
 * counts the next digit of all keys that begin with what is known of the sought one;
 * the digit of the latter is where the counts from the top reach its rank.
 */

#include "kernels/cuda/cuda_topk_view.cuh"

/* Shared memory of a block that counts. */
typedef struct lcomm_topk_histogram {
  uint32_t bin[LCOMM_TOPK_BINS];
  uint32_t sums[LCOMM_TOPK_WARPS];
  uint32_t last;
  uint32_t digit, rank, size; /* what was found: the bin, the rank in it, its keys */
} lcomm_topk_histogram;

/* A barrier follows before anything is counted. */
LCOMM_DEVICE void lcomm_topk_clear(lcomm_topk_histogram *h) {
  for (uint32_t i = lcomm_thread(); i < LCOMM_TOPK_BINS; i += LCOMM_TOPK_THREADS) {
    h->bin[i] = 0;
  }
}

LCOMM_DEVICE void lcomm_topk_count(lcomm_topk_histogram *h, lcomm_topk_step step, uint64_t known,
                                   uint64_t key) {
  if ((key ^ known) >> (step.shift + step.bits) != 0) {
    return;
  }
  uint32_t digit = (uint32_t)(key >> step.shift) & ((1u << step.bits) - 1);
  lcomm_atomic_add(&h->bin[digit], 1);
}

/* Adds up the histograms of the `blocks` that count for a segment; true for the one
 * that has the sum. The segment's own histogram is left zero. A thread
 * loads all its bins before it uses the first, to hide the latency of memory. */
LCOMM_DEVICE int lcomm_topk_gather(const lcomm_topk_tables *t, const lcomm_cuda_segment *segment,
                                   lcomm_topk_search *search, uint32_t blocks,
                                   lcomm_topk_histogram *h) {
  enum { OWN = LCOMM_TOPK_BINS / LCOMM_TOPK_THREADS };
  lcomm_sync_block();
  if (blocks == 1) {
    return 1;
  }
  uint32_t *all = t->histogram + (uint64_t)segment->histogram * LCOMM_TOPK_BINS, sum[OWN];
  for (uint32_t i = lcomm_thread(); i < LCOMM_TOPK_BINS; i += LCOMM_TOPK_THREADS) {
    if (h->bin[i] != 0) {
      lcomm_atomic_add(&all[i], h->bin[i]);
    }
  }
  if (!lcomm_is_last(&search->ticket, blocks, &h->last)) {
    return 0;
  }
  LCOMM_UNROLL for (uint32_t j = 0; j < OWN; j++) {
    sum[j] = lcomm_read_shared(&all[lcomm_thread() + j * LCOMM_TOPK_THREADS]);
  }
  LCOMM_UNROLL for (uint32_t j = 0; j < OWN; j++) {
    h->bin[lcomm_thread() + j * LCOMM_TOPK_THREADS] = sum[j];
    all[lcomm_thread() + j * LCOMM_TOPK_THREADS] = 0;
  }
  lcomm_sync_block();
  return 1;
}

/* Finds the digit of the rank-th greatest key, 1 <= rank <= keys counted. Each
 * thread has so many bins that they are all looked at, the first has the topmost. */
LCOMM_DEVICE void lcomm_topk_find(lcomm_topk_histogram *h, uint32_t rank) {
  enum { OWN = LCOMM_TOPK_BINS / LCOMM_TOPK_THREADS };
  uint32_t top = LCOMM_TOPK_BINS - 1 - lcomm_thread() * OWN, sum = 0, all;
  LCOMM_UNROLL for (uint32_t i = 0; i < OWN; i++) {
    sum += h->bin[top - i];
  }
  uint32_t before = lcomm_scan_block(sum, h->sums, &all);
  if (before < rank && rank - before <= sum) {
    uint32_t bin = top;
    for (; h->bin[bin] < rank - before; bin--) {
      before += h->bin[bin];
    }
    h->digit = bin;
    h->rank = rank - before;
    h->size = h->bin[bin];
  }
  lcomm_sync_block();
}

/* The step that follows `index`. When all keys of a bin are wanted, the smallest
 * one that could be in it will do. */
LCOMM_DEVICE uint32_t lcomm_topk_next(const lcomm_topk_histogram *h, uint32_t index) {
  return h->rank == h->size ? (uint32_t)LCOMM_TOPK_FOUND : index + 1;
}

#endif

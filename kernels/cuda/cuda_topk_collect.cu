/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The one pass of top-k over memory: base and the residual are added, and what
 * reaches the threshold of its segment becomes a candidate. */

#include "kernels/cuda/cuda_topk_tile.cuh"

typedef struct collect_args {
  lcomm_topk_tables t;
  const float *base, *before;
  float *accumulated; /* may be NULL, as before */
  uint32_t early;
} collect_args;

/* NaN is rare, so a row is tested as a whole. */
LCOMM_DEVICE void add_row(float value[LCOMM_TOPK_ROW], const float before[LCOMM_TOPK_ROW]) {
  float sum[LCOMM_TOPK_ROW];
  int nan = 0;
  LCOMM_UNROLL for (uint32_t k = 0; k < LCOMM_TOPK_ROW; k++) {
    sum[k] = value[k] + before[k];
    nan |= sum[k] != sum[k];
  }
  if (nan) {
    LCOMM_UNROLL for (uint32_t k = 0; k < LCOMM_TOPK_ROW; k++) {
      sum[k] = lcomm_sum_f32(value[k], before[k]);
    }
  }
  LCOMM_UNROLL for (uint32_t k = 0; k < LCOMM_TOPK_ROW; k++) {
    value[k] = sum[k];
  }
}

/* acc = base + before. Returns the least magnitude of the candidates, which is loaded
 * after the arrays, so that their loads do not wait for it. */
LCOMM_DEVICE uint32_t accumulate(const collect_args *a, const lcomm_topk_tile *tile,
                                 const lcomm_topk_search *search, float value[LCOMM_TOPK_OWN]) {
  float before[LCOMM_TOPK_OWN];
  lcomm_topk_load(a->base, tile, value);
  if (!a->accumulated) {
    return search->least;
  }
  lcomm_topk_load(a->before, tile, before);
  uint32_t least = search->least;
  LCOMM_UNROLL for (uint32_t j = 0; j < LCOMM_TOPK_ROWS; j++) {
    add_row(value + LCOMM_TOPK_ROW * j, before + LCOMM_TOPK_ROW * j);
  }
  lcomm_topk_store(a->accumulated, tile, value);
  return least;
}

LCOMM_KERNEL(topk_collect, collect_args) {
  LCOMM_SHARED uint32_t counts[LCOMM_WARP], place;
  lcomm_topk_piece piece = a.t.piece[lcomm_block()];
  const lcomm_cuda_segment *segment = &a.t.segment[piece.segment];
  lcomm_topk_search *search = &a.t.search[piece.segment];
  lcomm_topk_tile tile = lcomm_topk_tile_of(&a.t, piece, segment);
  float value[LCOMM_TOPK_OWN];
  uint32_t hits = 0, least = accumulate(&a, &tile, search, value);
  LCOMM_UNROLL for (uint32_t k = 0; k < LCOMM_TOPK_OWN; k++) {
    hits |= (uint32_t)(lcomm_topk_magnitude(value[k]) >= least) << k;
  }
  hits &= tile.mask;
  lcomm_topk_order order = lcomm_topk_order_of(hits, counts);
  if (lcomm_thread() == 0) {
    place = lcomm_topk_claim(segment, search, &search->found, order.all);
    lcomm_topk_run run = {place, place == LCOMM_TOPK_NOWHERE ? 0 : order.all};
    a.t.run[lcomm_block()] = run;
  }
  lcomm_sync_block();
  if (place != LCOMM_TOPK_NOWHERE) {
    lcomm_topk_stage(&a.t, &tile, value, hits, &order, place, a.accumulated, a.early);
  }
}

extern "C" int lcomm_cuda_topk_collect(const lcomm_cuda_topk *topk, const lcomm_topk_job *job,
                                       void *stream) {
  collect_args args = {topk->tables, job->base, job->before, job->accumulated, job->early};
  return LCOMM_LAUNCH(topk_collect, topk->tables.pieces, LCOMM_TOPK_THREADS, stream, args);
}

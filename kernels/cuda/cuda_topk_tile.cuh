/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_TOPK_TILE_CUH
#define LCOMM_KERNELS_CUDA_CUDA_TOPK_TILE_CUH

/* A piece in the registers of a block. Each warp has 512 neighbours of the tile,
 * each thread four rows of 4: row j of lane l begins at element 128 * j + 4 * l of
 * the warp's. So a warp touches 512 bytes in a row with every load and store, and
 * all loads of a thread are on their way together. Elements of the tile that are
 * not of the piece are left out.
 */

#include "kernels/cuda/cuda_topk_view.cuh"

enum {
  LCOMM_TOPK_ROWS = 4,
  LCOMM_TOPK_ROW = 4, /* elements of a thread */
  LCOMM_TOPK_OWN = LCOMM_TOPK_ROWS * LCOMM_TOPK_ROW,
  LCOMM_TOPK_ROW_STEP = LCOMM_WARP * LCOMM_TOPK_ROW
};

typedef struct lcomm_topk_tile {
  uint64_t global; /* the tile, in the arrays */
  uint32_t local;  /* and in the view */
  uint32_t own;    /* the thread's first element, in the tile */
  uint32_t mask;   /* a bit for each of its elements that the piece has */
  uint32_t whole;  /* it has all of the warp */
} lcomm_topk_tile;

/* Element k of a thread, in the tile, from its first. */
LCOMM_DEVICE uint32_t lcomm_topk_distance(uint32_t k) {
  return k / LCOMM_TOPK_ROW * LCOMM_TOPK_ROW_STEP + k % LCOMM_TOPK_ROW;
}

LCOMM_DEVICE lcomm_topk_tile lcomm_topk_tile_of(const lcomm_topk_tables *t, lcomm_topk_piece piece,
                                                const lcomm_cuda_segment *segment) {
  lcomm_topk_tile tile;
  uint32_t warp = lcomm_warp() * LCOMM_TOPK_ROWS * LCOMM_TOPK_ROW_STEP;
  uint32_t begin = piece.first % LCOMM_TILE;
  tile.local = piece.first - begin;
  tile.global = lcomm_topk_global(t, tile.local);
  tile.own = warp + lcomm_lane() * LCOMM_TOPK_ROW;
  uint32_t end = lcomm_topk_at_most(segment->first + segment->count - tile.local, LCOMM_TILE);
  tile.whole = begin <= warp && warp + LCOMM_TOPK_ROWS * LCOMM_TOPK_ROW_STEP <= end;
  tile.mask = (1u << LCOMM_TOPK_OWN) - 1;
  if (tile.whole) {
    return tile;
  }
  tile.mask = 0;
  LCOMM_UNROLL for (uint32_t k = 0; k < LCOMM_TOPK_OWN; k++) {
    uint32_t at = tile.own + lcomm_topk_distance(k);
    tile.mask |= (uint32_t)(at >= begin && at < end) << k;
  }
  return tile;
}

LCOMM_DEVICE int lcomm_topk_by_vectors(const float *first, const lcomm_topk_tile *tile) {
  return tile->whole && (uintptr_t)first % 16 == 0;
}

/* Elements past the end are 0. */
LCOMM_DEVICE void lcomm_topk_load(const float *array, const lcomm_topk_tile *tile,
                                  float value[LCOMM_TOPK_OWN]) {
  const float *first = array + tile->global + tile->own;
  if (lcomm_topk_by_vectors(first, tile)) {
    LCOMM_UNROLL for (uint32_t j = 0; j < LCOMM_TOPK_ROWS; j++) {
      lcomm_vec4 row = lcomm_load4_once(first + j * LCOMM_TOPK_ROW_STEP);
      value[4 * j] = lcomm_f32_from_bits(row.x);
      value[4 * j + 1] = lcomm_f32_from_bits(row.y);
      value[4 * j + 2] = lcomm_f32_from_bits(row.z);
      value[4 * j + 3] = lcomm_f32_from_bits(row.w);
    }
    return;
  }
  LCOMM_UNROLL for (uint32_t k = 0; k < LCOMM_TOPK_OWN; k++) {
    value[k] = tile->mask >> k & 1 ? first[lcomm_topk_distance(k)] : 0.0f;
  }
}

/* A streaming access: candidates are read again soon and should stay in the caches. */
LCOMM_DEVICE void lcomm_topk_store(float *array, const lcomm_topk_tile *tile,
                                   const float value[LCOMM_TOPK_OWN]) {
  float *first = array + tile->global + tile->own;
  if (lcomm_topk_by_vectors(first, tile)) {
    LCOMM_UNROLL for (uint32_t j = 0; j < LCOMM_TOPK_ROWS; j++) {
      lcomm_vec4 row = {lcomm_f32_bits(value[4 * j]), lcomm_f32_bits(value[4 * j + 1]),
                        lcomm_f32_bits(value[4 * j + 2]), lcomm_f32_bits(value[4 * j + 3])};
      lcomm_store4_once(first + j * LCOMM_TOPK_ROW_STEP, row);
    }
    return;
  }
  LCOMM_UNROLL for (uint32_t k = 0; k < LCOMM_TOPK_OWN; k++) {
    if (tile->mask >> k & 1) {
      first[lcomm_topk_distance(k)] = value[k];
    }
  }
}

/* ------------------------------------------------------------------- order */

/* How many hits of the block come before the first one of each row of a thread;
 * and how many it has. */
typedef struct lcomm_topk_order {
  uint32_t row[LCOMM_TOPK_ROWS];
  uint32_t all;
} lcomm_topk_order;

/* The counts of a thread's four rows are summed up together, a byte each: a row of
 * a warp has 128 elements. `counts` is shared memory, one number for each row of
 * each warp; it is free after the next barrier. */
LCOMM_DEVICE lcomm_topk_order lcomm_topk_order_of(uint32_t hits, uint32_t counts[LCOMM_WARP]) {
  lcomm_topk_order order;
  uint32_t own = 0;
  LCOMM_UNROLL for (uint32_t j = 0; j < LCOMM_TOPK_ROWS; j++) {
    own |= (uint32_t)__builtin_popcount(hits >> 4 * j & 0xfu) << 8 * j;
  }
  uint32_t scanned = lcomm_scan_warp(own);
  if (lcomm_lane() == LCOMM_WARP - 1) {
    LCOMM_UNROLL for (uint32_t j = 0; j < LCOMM_TOPK_ROWS; j++) {
      counts[lcomm_warp() * LCOMM_TOPK_ROWS + j] = scanned >> 8 * j & 0xffu;
    }
  }
  lcomm_sync_block();
  uint32_t row = counts[lcomm_lane()], rows = lcomm_scan_warp(row);
  order.all = lcomm_shuffle(rows, LCOMM_WARP - 1);
  LCOMM_UNROLL for (uint32_t j = 0; j < LCOMM_TOPK_ROWS; j++) {
    uint32_t before = lcomm_shuffle(rows - row, lcomm_warp() * LCOMM_TOPK_ROWS + j);
    order.row[j] = before + ((scanned - own) >> 8 * j & 0xffu);
  }
  return order;
}

/* ------------------------------------------------------------------- staging */

enum { LCOMM_TOPK_NOWHERE = UINT32_MAX };

/* Takes room for the hits of a piece; NOWHERE when there is none, or nothing to
 * store. Of the pieces that do not fit, the first one ends what is stored. */
LCOMM_DEVICE uint32_t lcomm_topk_claim(const lcomm_cuda_segment *segment, lcomm_topk_search *search,
                                       uint32_t *counter, uint32_t hits) {
  if (hits == 0) {
    return LCOMM_TOPK_NOWHERE;
  }
  uint32_t before = lcomm_atomic_add(counter, hits);
  if ((uint64_t)before + hits <= segment->capacity) {
    return segment->area + before;
  }
  if (before <= segment->capacity) {
    search->stored = before;
  }
  return LCOMM_TOPK_NOWHERE;
}

/* Stores the hits of a thread from `place` on, and in the residual (unless that is
 * NULL) what is left of them. */
LCOMM_DEVICE void lcomm_topk_stage(const lcomm_topk_tables *t, const lcomm_topk_tile *tile,
                                   const float value[LCOMM_TOPK_OWN], uint32_t hits,
                                   const lcomm_topk_order *order, uint32_t place, float *residual,
                                   uint32_t early) {
  LCOMM_UNROLL for (uint32_t j = 0; j < LCOMM_TOPK_ROWS; j++) {
    uint32_t at = place + order->row[j];
    LCOMM_UNROLL for (uint32_t k = 4 * j; k < 4 * j + 4; k++) {
      if ((hits >> k & 1) == 0) {
        continue;
      }
      uint32_t offset = tile->own + lcomm_topk_distance(k);
      t->position[at] = tile->local + offset;
      t->value[at] = value[k];
      at++;
      if (residual && (early || !lcomm_f32_is_finite(value[k]))) {
        residual[tile->global + offset] = lcomm_topk_left(value[k], early);
      }
    }
  }
}

#endif

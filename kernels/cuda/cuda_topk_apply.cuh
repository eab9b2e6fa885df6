/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_TOPK_APPLY_CUH
#define LCOMM_KERNELS_CUDA_CUDA_TOPK_APPLY_CUH

/* What blocks do with the entries of a payload of top-k, and how a payload is told to them. */

#include <string.h>

#include "kernels/cuda/cuda_dense.h"
#include "kernels/cuda/cuda_topk_reader.cuh"

/* What is done with each entry. */
typedef enum lcomm_topk_what {
  LCOMM_TOPK_APPLY_ADD,      /* vector += factor * value */
  LCOMM_TOPK_APPLY_COMMIT,   /* vector = lcomm_error_kept(vector, value) */
  LCOMM_TOPK_APPLY_MASK,     /* vector = 0 */
  LCOMM_TOPK_APPLY_POSITION, /* its position is noted */
  LCOMM_TOPK_APPLY_ADD_NOTED /* both */
} lcomm_topk_what;

typedef struct lcomm_topk_apply_args {
  lcomm_topk_reading r;
  lcomm_topk_what what;
  float factor;
  float *vector;
  float *masked; /* COMMIT: this is masked, too; NULL: nothing is */
  /* COMMIT, MASK: whose positions, which are noted, it is to be done for; no index: for all. */
  lcomm_topk_reading applied;
} lcomm_topk_apply_args;

/* -------------------------------------------------------------------- apply */

/* How far the strips before this one advance. */
LCOMM_DEVICE uint32_t lcomm_topk_advanced_before(const lcomm_topk_reading *r, uint32_t strip,
                                                 uint32_t sums[LCOMM_TOPK_WARPS]) {
  uint32_t own = 0, all;
  for (uint32_t i = lcomm_thread(); i < strip; i += LCOMM_TOPK_THREADS) {
    own += r->mark[i].advance;
  }
  lcomm_scan_block(own, sums, &all);
  return all;
}

LCOMM_DEVICE int lcomm_topk_was_applied(const lcomm_topk_reading *applied, uint32_t position) {
  if (!applied->index) {
    return 1;
  }
  uint32_t begin = 0, end = applied->entries;
  while (begin < end) {
    uint32_t middle = begin + (end - begin) / 2;
    if (applied->position[middle] < position) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin < applied->entries && applied->position[begin] == position;
}

LCOMM_DEVICE void lcomm_topk_apply_entry(const lcomm_topk_apply_args *a,
                                         const lcomm_topk_reading *r,
                                         const lcomm_topk_reading *applied, uint32_t entry,
                                         uint32_t position) {
  if (a->what == LCOMM_TOPK_APPLY_POSITION || a->what == LCOMM_TOPK_APPLY_ADD_NOTED) {
    r->position[entry] = position;
  }
  if (a->what == LCOMM_TOPK_APPLY_POSITION || position >= r->count ||
      !lcomm_topk_was_applied(applied, position)) {
    return;
  }
  uint64_t at = lcomm_topk_global_of(position, r->parts, r->part);
  float *place = a->vector + at;
  if (a->what == LCOMM_TOPK_APPLY_MASK) {
    *place = 0.0f;
    return;
  }
  float value = lcomm_topk_value(r, entry);
  if (a->what == LCOMM_TOPK_APPLY_COMMIT) {
    *place = lcomm_error_kept(*place, value);
    if (a->masked) {
      a->masked[at] = 0.0f;
    }
  } else {
    *place = lcomm_sum_f32(*place, lcomm_product_f32(a->factor, value));
  }
}

LCOMM_DEVICE void lcomm_topk_apply_strip(const lcomm_topk_apply_args *a, uint32_t strip,
                                         lcomm_topk_strip *s) {
  const lcomm_topk_reading r = lcomm_topk_begin(&a->r);
  const lcomm_topk_reading applied = a->applied.index ? lcomm_topk_begin(&a->applied) : a->applied;
  if (lcomm_topk_is_behind(&r, strip)) {
    return;
  }
  lcomm_topk_mark mark = r.mark[strip];
  uint32_t next = lcomm_topk_advanced_before(&r, strip, s->sums);
  lcomm_topk_load_strip(&r, strip, s->byte);
  if (lcomm_thread() == 0) {
    s->next = mark.entrance;
    s->block = lcomm_topk_at_most(mark.block, r.blocks);
  }
  while (lcomm_topk_next_round(&r, strip, s) > 0) {
    uint32_t all, own = lcomm_thread() < s->found ? s->advance[lcomm_thread()] : 0;
    uint32_t before = next + lcomm_scan_block(own, s->sums, &all);
    s->advance[lcomm_thread()] = before;
    next += all;
    lcomm_sync_block();
    for (uint32_t i = lcomm_warp(); i < s->found; i += LCOMM_TOPK_WARPS) {
      uint32_t n = lcomm_topk_entries_in(&r, s->block + i);
      uint32_t distance = lcomm_topk_distances(&r, s, strip, s->begin[i], n);
      if (lcomm_lane() < n) {
        lcomm_topk_apply_entry(a, &r, &applied,
                               (s->block + i) * LCOMM_TOPK_INDEX_BLOCK + lcomm_lane(),
                               s->advance[i] + distance - 1);
      }
    }
    lcomm_sync_block();
    if (lcomm_thread() == 0) {
      s->block += s->found;
    }
  }
}

/* -------------------------------------------------------------------- clear */

typedef struct lcomm_topk_clear_args {
  float *vector;
  uint32_t count, parts, part;
} lcomm_topk_clear_args;

LCOMM_DEVICE void lcomm_topk_clear_tile(const lcomm_topk_clear_args *a, uint32_t tile) {
  for (uint32_t i = lcomm_thread(); i < LCOMM_TILE; i += LCOMM_TOPK_THREADS) {
    uint64_t local = (uint64_t)tile * LCOMM_TILE + i;
    if (local < a->count) {
      a->vector[lcomm_topk_global_of((uint32_t)local, a->parts, a->part)] = 0.0f;
    }
  }
}

/* --------------------------------------------------------------------- host */

#ifdef __cplusplus
extern "C" {
#endif

/* Applies a payload that was read. */
int lcomm_cuda_topk_apply(const lcomm_topk_apply_args *args, void *stream);

#ifdef __cplusplus
}
#endif

static inline size_t lcomm_topk_aligned(uint64_t size) {
  return (size_t)((size + 15) / 16 * 16);
}

static inline uint64_t lcomm_topk_strips_of(uint64_t bytes) {
  return (bytes + LCOMM_TOPK_STRIP - 1) / LCOMM_TOPK_STRIP;
}

static inline lcomm_topk_reading lcomm_topk_reading_of(const lcomm_cuda_sparse *a) {
  lcomm_topk_reading r;
  memset(&r, 0, sizeof r);
  r.index = a->payload + sizeof(uint32_t);
  r.readable = a->size - sizeof(uint32_t);
  r.most = (uint32_t)a->entries;
  r.strips = (uint32_t)lcomm_topk_strips_of(r.readable);
  /* Few strips are sooner gone over one by one. The last one has no hops. */
  r.leaps = r.strips > 2 * LCOMM_TOPK_LEAP ? (r.strips - 1) / LCOMM_TOPK_LEAP : 0;
  r.int8 = a->int8;
  r.parts = a->parts;
  r.part = a->part;
  r.count = (uint32_t)lcomm_stripe_count(a->base_count, a->parts, a->part);
  uint8_t *scratch = (uint8_t *)a->scratch;
  r.index_size = (uint32_t *)scratch;
  scratch += lcomm_topk_aligned(sizeof *r.index_size);
  r.mark = (lcomm_topk_mark *)scratch;
  scratch += lcomm_topk_aligned(lcomm_topk_strips_of(a->size) * sizeof *r.mark);
  r.hop = (uint32_t *)scratch;
  scratch += lcomm_topk_aligned(lcomm_topk_strips_of(a->size) * LCOMM_TOPK_HOPS * sizeof *r.hop);
  r.leap = (uint32_t *)scratch;
  scratch += lcomm_topk_aligned(lcomm_topk_strips_of(a->size) / LCOMM_TOPK_LEAP * LCOMM_TOPK_HOPS *
                                sizeof *r.leap);
  r.position = (uint32_t *)scratch;
  return r;
}

static inline int lcomm_topk_is_valid(const lcomm_cuda_sparse *a) {
  return a->base_count <= UINT32_MAX && a->entries <= UINT32_MAX && a->part < a->parts &&
         a->size >= sizeof(uint32_t);
}

static inline lcomm_topk_clear_args lcomm_topk_clearing_of(const lcomm_cuda_sparse *a,
                                                           float *base) {
  uint32_t count = (uint32_t)lcomm_stripe_count(a->base_count, a->parts, a->part);
  lcomm_topk_clear_args args = {base, count, a->parts, a->part};
  return args;
}

static inline uint32_t lcomm_topk_tiles_of(const lcomm_topk_clear_args *a) {
  return (uint32_t)(((uint64_t)a->count + LCOMM_TILE - 1) / LCOMM_TILE);
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the receiver of a top-k payload does with it, on a device. */

#include <string.h>

#include "kernels/cuda/cuda_dense.h"
#include "kernels/cuda/cuda_topk_reader.cuh"

/* What is done with each entry. */
typedef enum apply_what {
  APPLY_ADD,      /* vector += factor * value */
  APPLY_COMMIT,   /* vector = lcomm_error_kept(vector, value) */
  APPLY_MASK,     /* vector = 0 */
  APPLY_POSITION, /* its position is noted in the scratch */
} apply_what;

typedef struct apply_args {
  lcomm_topk_reading r;
  apply_what what;
  float factor;
  float *vector;
  /* COMMIT, MASK: whose positions, which are noted, it is to be done for; no index: for all. */
  lcomm_topk_reading applied;
} apply_args;

/* -------------------------------------------------------------------- apply */

/* How far the strips before this one advance. */
LCOMM_DEVICE uint32_t advanced_before(const lcomm_topk_reading *r,
                                      uint32_t sums[LCOMM_TOPK_WARPS]) {
  uint32_t own = 0, all;
  for (uint32_t i = lcomm_thread(); i < lcomm_block(); i += LCOMM_TOPK_THREADS) {
    own += r->mark[i].advance;
  }
  lcomm_scan_block(own, sums, &all);
  return all;
}

LCOMM_DEVICE int was_applied(const lcomm_topk_reading *applied, uint32_t position) {
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

LCOMM_DEVICE void apply(const apply_args *a, const lcomm_topk_reading *r,
                        const lcomm_topk_reading *applied, uint32_t entry, uint32_t position) {
  if (a->what == APPLY_POSITION) {
    r->position[entry] = position;
    return;
  }
  if (position >= r->count || !was_applied(applied, position)) {
    return;
  }
  float *place = a->vector + lcomm_topk_global_of(position, r->parts, r->part);
  if (a->what == APPLY_MASK) {
    *place = 0.0f;
    return;
  }
  float value = lcomm_topk_value(r, entry);
  if (a->what == APPLY_COMMIT) {
    *place = lcomm_error_kept(*place, value);
  } else {
    *place = lcomm_sum_f32(*place, lcomm_product_f32(a->factor, value));
  }
}

LCOMM_KERNEL(topk_apply, apply_args) {
  LCOMM_SHARED lcomm_topk_strip s;
  const lcomm_topk_reading r = lcomm_topk_begin(&a.r);
  const lcomm_topk_reading applied = a.applied.index ? lcomm_topk_begin(&a.applied) : a.applied;
  if (lcomm_topk_is_behind(&r, lcomm_block())) {
    return;
  }
  lcomm_topk_mark mark = r.mark[lcomm_block()];
  uint32_t next = advanced_before(&r, s.sums);
  lcomm_topk_load_strip(&r, lcomm_block(), s.byte);
  if (lcomm_thread() == 0) {
    s.next = mark.entrance;
    s.block = lcomm_topk_at_most(mark.block, r.blocks);
  }
  while (lcomm_topk_next_round(&r, lcomm_block(), &s) > 0) {
    uint32_t all, own = lcomm_thread() < s.found ? s.advance[lcomm_thread()] : 0;
    uint32_t before = next + lcomm_scan_block(own, s.sums, &all);
    s.advance[lcomm_thread()] = before;
    next += all;
    lcomm_sync_block();
    for (uint32_t i = lcomm_warp(); i < s.found; i += LCOMM_TOPK_WARPS) {
      uint32_t n = lcomm_topk_entries_in(&r, s.block + i);
      uint32_t distance = lcomm_topk_distances(&r, &s, lcomm_block(), s.begin[i], n);
      if (lcomm_lane() < n) {
        apply(&a, &r, &applied, (s.block + i) * LCOMM_TOPK_INDEX_BLOCK + lcomm_lane(),
              s.advance[i] + distance - 1);
      }
    }
    lcomm_sync_block();
    if (lcomm_thread() == 0) {
      s.block += s.found;
    }
  }
}

typedef struct clear_args {
  float *vector;
  uint32_t count, parts, part;
} clear_args;

LCOMM_KERNEL(topk_clear, clear_args) {
  for (uint32_t i = lcomm_thread(); i < LCOMM_TILE; i += LCOMM_TOPK_THREADS) {
    uint64_t local = (uint64_t)lcomm_block() * LCOMM_TILE + i;
    if (local < a.count) {
      a.vector[lcomm_topk_global_of((uint32_t)local, a.parts, a.part)] = 0.0f;
    }
  }
}

/* ------------------------------------------------------------------- launch */

static size_t aligned(uint64_t size) {
  return (size_t)((size + 15) / 16 * 16);
}

static uint64_t strips_of(uint64_t bytes) {
  return (bytes + LCOMM_TOPK_STRIP - 1) / LCOMM_TOPK_STRIP;
}

extern "C" size_t lcomm_cuda_run_topk_scratch(uint64_t entries, uint64_t size) {
  uint64_t strips = strips_of(size);
  return aligned(sizeof(uint32_t)) + aligned(strips * sizeof(lcomm_topk_mark)) +
         aligned(strips * LCOMM_TOPK_HOPS * sizeof(uint32_t)) +
         aligned(strips / LCOMM_TOPK_LEAP * LCOMM_TOPK_HOPS * sizeof(uint32_t)) +
         aligned(entries * sizeof(uint32_t));
}

static lcomm_topk_reading reading_of(const lcomm_cuda_sparse *a) {
  lcomm_topk_reading r;
  memset(&r, 0, sizeof r);
  r.index = a->payload + sizeof(uint32_t);
  r.readable = a->size - sizeof(uint32_t);
  r.most = (uint32_t)a->entries;
  r.strips = (uint32_t)strips_of(r.readable);
  /* Few strips are sooner gone over one by one. The last one has no hops. */
  r.leaps = r.strips > 2 * LCOMM_TOPK_LEAP ? (r.strips - 1) / LCOMM_TOPK_LEAP : 0;
  r.int8 = a->int8;
  r.parts = a->parts;
  r.part = a->part;
  r.count = (uint32_t)lcomm_stripe_count(a->base_count, a->parts, a->part);
  uint8_t *scratch = (uint8_t *)a->scratch;
  r.index_size = (uint32_t *)scratch;
  scratch += aligned(sizeof *r.index_size);
  r.mark = (lcomm_topk_mark *)scratch;
  scratch += aligned(strips_of(a->size) * sizeof *r.mark);
  r.hop = (uint32_t *)scratch;
  scratch += aligned(strips_of(a->size) * LCOMM_TOPK_HOPS * sizeof *r.hop);
  r.leap = (uint32_t *)scratch;
  scratch += aligned(strips_of(a->size) / LCOMM_TOPK_LEAP * LCOMM_TOPK_HOPS * sizeof *r.leap);
  r.position = (uint32_t *)scratch;
  return r;
}

static int is_valid(const lcomm_cuda_sparse *a) {
  return a->base_count <= UINT32_MAX && a->entries <= UINT32_MAX && a->part < a->parts &&
         a->size >= sizeof(uint32_t);
}

static int run_on(const lcomm_cuda_sparse *a, apply_args *args, void *stream) {
  if (!is_valid(a)) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  if (a->entries == 0) {
    return 0;
  }
  args->r = reading_of(a);
  int error = lcomm_cuda_topk_find_marks(&args->r, stream);
  if (error != 0) {
    return error;
  }
  return LCOMM_LAUNCH(topk_apply, args->r.strips, LCOMM_TOPK_THREADS, stream, *args);
}

extern "C" int lcomm_cuda_run_topk_add(const lcomm_cuda_sparse *a, float factor, float *base,
                                       void *stream) {
  apply_args args;
  memset(&args, 0, sizeof args);
  args.what = APPLY_ADD;
  args.factor = factor;
  args.vector = base;
  return run_on(a, &args, stream);
}

static int clear_view(const lcomm_cuda_sparse *a, float *base, void *stream) {
  if (a->parts == 1) {
    return lcomm_cuda_set(base, a->base_count * sizeof *base, stream);
  }
  uint32_t count = (uint32_t)lcomm_stripe_count(a->base_count, a->parts, a->part);
  clear_args args = {base, count, a->parts, a->part};
  uint32_t tiles = (uint32_t)(((uint64_t)count + LCOMM_TILE - 1) / LCOMM_TILE);
  return LCOMM_LAUNCH(topk_clear, tiles, LCOMM_TOPK_THREADS, stream, args);
}

extern "C" int lcomm_cuda_run_topk_decode(const lcomm_cuda_sparse *a, float factor, float *base,
                                          void *stream) {
  if (!is_valid(a)) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  int error = clear_view(a, base, stream);
  return error != 0 ? error : lcomm_cuda_run_topk_add(a, factor, base, stream);
}

/* For every entry that was sent and applied. */
static int commit(const lcomm_cuda_sparse *sent, const lcomm_cuda_sparse *applied, apply_what what,
                  float *vector, void *stream) {
  apply_args args;
  memset(&args, 0, sizeof args);
  if (applied) {
    args.what = APPLY_POSITION;
    int error = run_on(applied, &args, stream);
    if (error != 0 || applied->entries == 0) {
      return error;
    }
    args.applied = args.r;
  }
  args.what = what;
  args.vector = vector;
  return run_on(sent, &args, stream);
}

extern "C" int lcomm_cuda_run_topk_commit(const lcomm_cuda_sparse *sent,
                                          const lcomm_cuda_sparse *applied, float *residual,
                                          void *stream) {
  return commit(sent, applied, APPLY_COMMIT, residual, stream);
}

extern "C" int lcomm_cuda_run_topk_mask(const lcomm_cuda_sparse *sent,
                                        const lcomm_cuda_sparse *applied, float *momentum,
                                        void *stream) {
  return commit(sent, applied, APPLY_MASK, momentum, stream);
}

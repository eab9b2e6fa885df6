/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the receiver of a top-k payload does with it, on a device. */

#include "kernels/cuda/cuda_topk_apply.cuh"

LCOMM_KERNEL(topk_apply, lcomm_topk_apply_args) {
  LCOMM_SHARED lcomm_topk_strip s;
  lcomm_topk_apply_strip(&a, lcomm_block(), &s);
}

LCOMM_KERNEL(topk_clear, lcomm_topk_clear_args) {
  lcomm_topk_clear_tile(&a, lcomm_block());
}

/* ------------------------------------------------------------------- launch */

extern "C" size_t lcomm_cuda_run_topk_scratch(uint64_t entries, uint64_t size) {
  uint64_t strips = lcomm_topk_strips_of(size);
  return lcomm_topk_aligned(sizeof(uint32_t)) +
         lcomm_topk_aligned(strips * sizeof(lcomm_topk_mark)) +
         lcomm_topk_aligned(strips * LCOMM_TOPK_HOPS * sizeof(uint32_t)) +
         lcomm_topk_aligned(strips / LCOMM_TOPK_LEAP * LCOMM_TOPK_HOPS * sizeof(uint32_t)) +
         lcomm_topk_aligned(entries * sizeof(uint32_t));
}

extern "C" int lcomm_cuda_topk_apply(const lcomm_topk_apply_args *args, void *stream) {
  return LCOMM_LAUNCH(topk_apply, args->r.strips, LCOMM_TOPK_THREADS, stream, *args);
}

static int run_on(const lcomm_cuda_sparse *a, lcomm_topk_apply_args *args, void *stream) {
  if (!lcomm_topk_is_valid(a)) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  if (a->entries == 0) {
    return 0;
  }
  args->r = lcomm_topk_reading_of(a);
  int error = lcomm_cuda_topk_find_marks(&args->r, stream);
  if (error != 0) {
    return error;
  }
  return lcomm_cuda_topk_apply(args, stream);
}

extern "C" int lcomm_cuda_run_topk_add(const lcomm_cuda_sparse *a, float factor, float *base,
                                       void *stream) {
  lcomm_topk_apply_args args;
  memset(&args, 0, sizeof args);
  args.what = LCOMM_TOPK_APPLY_ADD;
  args.factor = factor;
  args.vector = base;
  return run_on(a, &args, stream);
}

static int clear_view(const lcomm_cuda_sparse *a, float *base, void *stream) {
  if (a->parts == 1) {
    return lcomm_cuda_set(base, a->base_count * sizeof *base, stream);
  }
  lcomm_topk_clear_args args = lcomm_topk_clearing_of(a, base);
  return LCOMM_LAUNCH(topk_clear, lcomm_topk_tiles_of(&args), LCOMM_TOPK_THREADS, stream, args);
}

extern "C" int lcomm_cuda_run_topk_decode(const lcomm_cuda_sparse *a, float factor, float *base,
                                          void *stream) {
  if (!lcomm_topk_is_valid(a)) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  int error = clear_view(a, base, stream);
  return error != 0 ? error : lcomm_cuda_run_topk_add(a, factor, base, stream);
}

/* ------------------------------------------------------------------ commits */

/* For every entry that was sent and applied. */
static int commit(const lcomm_cuda_sparse *sent, const lcomm_cuda_sparse *applied,
                  lcomm_topk_what what, float *vector, void *stream) {
  lcomm_topk_apply_args args;
  memset(&args, 0, sizeof args);
  if (applied) {
    args.what = LCOMM_TOPK_APPLY_POSITION;
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
  return commit(sent, applied, LCOMM_TOPK_APPLY_COMMIT, residual, stream);
}

extern "C" int lcomm_cuda_run_topk_mask(const lcomm_cuda_sparse *sent,
                                        const lcomm_cuda_sparse *applied, float *momentum,
                                        void *stream) {
  return commit(sent, applied, LCOMM_TOPK_APPLY_MASK, momentum, stream);
}

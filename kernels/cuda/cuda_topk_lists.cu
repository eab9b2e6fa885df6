/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Payloads of top-k that are read together: those of a group into places of their own, or the
 * summands of a sum. */

#include "kernels/cuda/cuda_topk_apply.cuh"

/* Payloads that are added, each to an array of its own. */
typedef struct add_list_args {
  lcomm_topk_readings list;
  float *vector[LCOMM_CUDA_LIST_MAX];
  float factor;
} add_list_args;

LCOMM_KERNEL(topk_add_list, add_list_args) {
  LCOMM_SHARED lcomm_topk_strip s;
  lcomm_list_place place = lcomm_list_place_of(&a.list.blocks);
  lcomm_topk_apply_args one = {};
  one.r = a.list.reading[place.piece];
  one.what = LCOMM_TOPK_APPLY_ADD;
  one.factor = a.factor;
  one.vector = a.vector[place.piece];
  lcomm_topk_apply_strip(&one, place.block, &s);
}

typedef struct clear_list_args {
  lcomm_list_blocks blocks;
  lcomm_topk_clear_args piece[LCOMM_CUDA_LIST_MAX];
} clear_list_args;

LCOMM_KERNEL(topk_clear_list, clear_list_args) {
  lcomm_list_place place = lcomm_list_place_of(&a.blocks);
  lcomm_topk_clear_tile(&a.piece[place.piece], place.block);
}

/* ------------------------------------------------------------------- launch */

/* Those that can have an entry. */
static int take_in(const lcomm_cuda_sparse *a, float *base, add_list_args *args, uint32_t *count) {
  if (!lcomm_topk_is_valid(a)) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  if (a->entries > 0) {
    args->list.reading[*count] = lcomm_topk_reading_of(a);
    args->vector[(*count)++] = base;
  }
  return 0;
}

static int clear_all(const lcomm_cuda_topk_decode *list, uint32_t count, void *stream) {
  clear_list_args args = {};
  for (uint32_t i = 0; i < count; i++) {
    args.piece[i] = lcomm_topk_clearing_of(&list[i].payload, list[i].base);
    if (!lcomm_list_add(&args.blocks, lcomm_topk_tiles_of(&args.piece[i]))) {
      return LCOMM_CUDA_INVALID_VALUE;
    }
  }
  return LCOMM_LAUNCH(topk_clear_list, lcomm_list_blocks_all(&args.blocks), LCOMM_TOPK_THREADS,
                      stream, args);
}

static int add_all(add_list_args *args, uint32_t count, void *stream) {
  int error = lcomm_cuda_topk_find_all_marks(args->list.reading, count, stream);
  for (uint32_t i = 0; i < count && error == 0; i++) {
    bool fits = lcomm_list_add(&args->list.blocks, args->list.reading[i].strips);
    error = fits ? 0 : LCOMM_CUDA_INVALID_VALUE;
  }
  return error != 0 ? error
                    : LCOMM_LAUNCH(topk_add_list, lcomm_list_blocks_all(&args->list.blocks),
                                   LCOMM_TOPK_THREADS, stream, *args);
}

extern "C" int lcomm_cuda_run_topk_decode_list(const lcomm_cuda_topk_decode *list, uint32_t count,
                                               float factor, void *stream) {
  add_list_args args = {};
  uint32_t read = 0;
  int error = count > LCOMM_CUDA_LIST_MAX ? LCOMM_CUDA_INVALID_VALUE : 0;
  args.factor = factor;
  for (uint32_t i = 0; i < count && error == 0; i++) {
    error = take_in(&list[i].payload, list[i].base, &args, &read);
  }
  if (error == 0 && count > 0) {
    error = clear_all(list, count, stream);
  }
  return error != 0 || read == 0 ? error : add_all(&args, read, stream);
}

/* One after the other: entries of several may have one position. */
static int add_each(const add_list_args *all, uint32_t count, void *stream) {
  int error = lcomm_cuda_topk_find_all_marks(all->list.reading, count, stream);
  for (uint32_t i = 0; i < count && error == 0; i++) {
    lcomm_topk_apply_args args = {};
    args.r = all->list.reading[i];
    args.what = LCOMM_TOPK_APPLY_ADD;
    args.factor = all->factor;
    args.vector = all->vector[i];
    error = lcomm_cuda_topk_apply(&args, stream);
  }
  return error;
}

extern "C" int lcomm_cuda_run_topk_add_list(const lcomm_cuda_sparse *list, uint32_t count,
                                            float factor, float *base, void *stream) {
  add_list_args args = {};
  uint32_t read = 0;
  int error = count > LCOMM_CUDA_LIST_MAX ? LCOMM_CUDA_INVALID_VALUE : 0;
  args.factor = factor;
  for (uint32_t i = 0; i < count && error == 0; i++) {
    error = take_in(&list[i], base, &args, &read);
  }
  return error != 0 || read == 0 ? error : add_each(&args, read, stream);
}

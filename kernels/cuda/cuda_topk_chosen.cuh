/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_TOPK_CHOSEN_CUH
#define LCOMM_KERNELS_CUDA_CUDA_TOPK_CHOSEN_CUH

/* The chosen elements: in the order of pieces, that is by output and then by
 * place, with positions in the part of their output. */

#include "kernels/cuda/cuda_topk_view.cuh"

/* Those of the pieces before this one. */
LCOMM_DEVICE uint32_t lcomm_topk_before(const lcomm_topk_tables *t, uint32_t piece) {
  return t->chunk_before[piece / LCOMM_TOPK_CHUNK] + t->before[piece];
}

typedef struct lcomm_topk_entries {
  uint32_t first, count; /* among the chosen, with those that do not fit */
  uint32_t sent;
} lcomm_topk_entries;

LCOMM_DEVICE lcomm_topk_entries lcomm_topk_entries_of(const lcomm_topk_tables *t, uint32_t output) {
  const lcomm_topk_output *o = &t->output[output];
  lcomm_topk_entries entries;
  entries.first = lcomm_topk_before(t, o->first_piece);
  entries.count = lcomm_topk_before(t, o->end_piece) - entries.first;
  entries.sent = entries.count < o->capacity ? entries.count : o->capacity;
  return entries;
}

/* The element of an entry, in the arrays. */
LCOMM_DEVICE uint64_t lcomm_topk_entry_global(const lcomm_topk_tables *t, uint32_t output,
                                              uint32_t position) {
  if (t->outputs > 1) {
    return lcomm_topk_global_of(position, t->outputs, output);
  }
  return lcomm_topk_global(t, position);
}

#endif

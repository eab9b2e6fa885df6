/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_PREFETCH_H
#define LCOMM_KERNELS_PREFETCH_H

/* Prefetch the block of float32 that lies 2 KiB ahead. A kernel with much
 * arithmetic per element fills the reorder window before the hardware
 * prefetcher sees enough misses; prefetching doubles or trebles its speed on arrays
 * that do not fit a cache. Integer addresses, because the block may lie past
 * the end of the array, where a prefetch does nothing.
 */

#include <stdint.h>

#include "kernels/kernels.h"

enum { LCOMM_PREFETCH_BYTES = 2048, LCOMM_CACHE_LINE = 64 };

static inline void lcomm_prefetch_read(const float *block) {
  uintptr_t ahead = (uintptr_t)block + LCOMM_PREFETCH_BYTES;
  for (uintptr_t line = 0; line < LCOMM_BLOCK * sizeof *block; line += LCOMM_CACHE_LINE) {
    __builtin_prefetch((const void *)(ahead + line), 0);
  }
}

static inline void lcomm_prefetch_write(const float *block) {
  uintptr_t ahead = (uintptr_t)block + LCOMM_PREFETCH_BYTES;
  for (uintptr_t line = 0; line < LCOMM_BLOCK * sizeof *block; line += LCOMM_CACHE_LINE) {
    __builtin_prefetch((const void *)(ahead + line), 1);
  }
}

#endif

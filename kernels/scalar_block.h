/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_SCALAR_BLOCK_H
#define LCOMM_KERNELS_SCALAR_BLOCK_H

/* What the scalar kernels of the block formats share. */

#include "kernels/element.h"
#include "kernels/prefetch.h"

/* Magnitude bits of the largest of `block` values. */
static inline int32_t lcomm_block_amax(const float *restrict source, size_t block) {
  int32_t amax = 0;
  lcomm_prefetch_read(source);
  for (size_t i = 0; i < block; i++) {
    int32_t magnitude = lcomm_f32_magnitude(source[i]);
    amax = magnitude > amax ? magnitude : amax;
  }
  return amax;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_CLIP_H
#define LCOMM_CODECS_CLIP_H

/* Clipping of a gradient's norm, on the host; kernels/cuda/cuda_clip.cu has it on a device, with
 * the same bits (kernels/squares.h). NaN and Inf do not count in a norm, so that the finite values
 * beside them are clipped, and stay NaN and Inf. */

#include "kernels/kernels.h"
#include "libcomm/include/libcomm_types.h"

/* Of the values of several arrays, one after the other. All zero: of none. */
typedef struct lcomm_squares {
  double plain;
  double scaled; /* of values times LCOMM_SQUARES_UNIT, of float64 only */
} lcomm_squares;

/* Add the squares of n values: of float64, or else of float32. */
void lcomm_squares_add(lcomm_squares *squares, const void *values, lcomm_dtype dtype, uint64_t n);

/* The L2 norm of all of them. */
double lcomm_squares_norm(const lcomm_squares *squares);

/* Scale n values down so that their norm is at most `limit`. */
void lcomm_clip(const lcomm_kernels *kernels, void *values, lcomm_dtype dtype, uint64_t n,
                double limit);

/* The factor that does so; 1 where there is nothing to do. */
static inline double lcomm_clip_factor(double norm, double limit) {
  return norm > limit ? limit / norm : 1.0;
}

/* values = factor * values */
void lcomm_clip_scale(const lcomm_kernels *kernels, void *values, lcomm_dtype dtype, uint64_t n,
                      double factor);

#endif

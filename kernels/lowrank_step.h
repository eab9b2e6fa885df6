/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_LOWRANK_STEP_H
#define LCOMM_KERNELS_LOWRANK_STEP_H

/* Low rank, step by step: what each step of a matrix reads and writes, on the host and on a device.
 * The arithmetic is in lowrank.h. */

#include <stdint.h>

/* One matrix in one step, where a whole step is asked for. */
typedef struct lcomm_lowrank_matrix {
  uint64_t rows, columns;
  uint32_t rank;
  float share;            /* of a rank in the result, see expand */
  const float *gradient;  /* of this rank */
  const float *before;    /* its residual; may be m */
  float *m;               /* becomes before + gradient, then the new residual */
  float *result;          /* may be the gradient */
  float *p, *q;           /* of this rank, then the sums */
  const float *was_basis; /* the Q that the step begins with; may be basis */
  float *basis;           /* becomes the Q of the next step */
  uint32_t *lost;         /* 1: P or Q cannot be used, because a value is not finite, or of
                             LCOMM_LOWRANK_TOO_LARGE and more; else 0 */
} lcomm_lowrank_matrix;

/* From here on a value may overflow in a sum. */
#define LCOMM_LOWRANK_TOO_LARGE 0x1p96f

/* The square of the part of its length that a vector must keep, see lcomm_lowrank_orthonormalise.
 */
#define LCOMM_LOWRANK_LEAST_LEFT 0x1p-40

/* Steps on a CUDA device, of up to LCOMM_CUDA_LIST_MAX matrices at once; see kernels/cuda.h for how
 * its functions are called. What lies in a matrix is memory of the device. Which NaN is one, is
 * open. */
typedef struct lcomm_cuda_lowrank {
  /* m = before + gradient; p = M was_basis */
  int (*project)(const lcomm_lowrank_matrix *list, uint32_t count, void *stream);
  /* P is the sum: P orthonormal; q = M' P. Lost: q = 0 */
  int (*turn)(const lcomm_lowrank_matrix *list, uint32_t count, void *stream);
  /* Q is the sum: as expand, and basis = q, orthonormal. Lost, now or by `turn`: result = NaN,
   * basis = was_basis, and m keeps what is smaller than LCOMM_LOWRANK_TOO_LARGE; else it is 0. */
  int (*finish)(const lcomm_lowrank_matrix *list, uint32_t count, void *stream);
} lcomm_cuda_lowrank;

#endif

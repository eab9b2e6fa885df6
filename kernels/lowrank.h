/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_LOWRANK_H
#define LCOMM_KERNELS_LOWRANK_H

/* Low rank, as PowerSGD has it (Vogels et al. 2019): a matrix M of rows x columns is sent as P Q',
 * with P = M Q, orthonormalised, and then Q = M' P. One step of a rank is
 *   project, a sum of P over ranks, lcomm_lowrank_orthonormalise, project_back, a sum of Q over
 *   ranks, expand;
 * the next step begins with this Q, orthonormalised, and so goes on where this one ended.
 *
 * All values are float32. M lies row by row. P is `rank` vectors of `rows` values, one after the
 * other (p[k * rows + i]), and Q `rank` vectors of `columns` values (q[k * columns + j]). Any rank
 * from 1 on will do, and any rows and columns, 0 included; no two arrays overlap unless a comment
 * says so. Every operation is rounded by itself, so additions have an order, which all tables keep:
 *
 * - Over columns (project): 16 sums, from 0; sum s adds the products of the columns s, s + 16,
 *   s + 32, ... in that order. Then sum s becomes sum s + sum (s + 8), for s below 8; the same with
 *   4, with 2 and with 1.
 * - Over rows (project_back): the products of 64 rows are added in their order, from 0; such sums
 *   are added in their order, from 0.
 * - Over ranks (expand): the first product; the others are added in their order.
 *
 * What is not finite. A NaN or Inf in M makes its row of P NaN or Inf, lcomm_lowrank_orthonormalise
 * then makes P NaN, and project_back Q: so all values of the matrix become NaN, on all ranks
 * alike. `expand` leaves nothing in M that is not finite, and all of what is (as f32_keep_error
 * does). Q is NaN after such a step: the next one begins with that of an earlier step, or anew.
 * The sum of Q says so on all ranks alike.
 */

#include <stddef.h>
#include <stdint.h>

enum { LCOMM_LOWRANK_SUMS = 16, LCOMM_LOWRANK_ROWS = 64 };

typedef struct lcomm_kernels_lowrank {
  /* m += gradient; p = M Q. gradient may be NULL: then m stays as it is. */
  void (*project)(float *p, float *m, const float *gradient, const float *q, size_t rows,
                  size_t columns, size_t rank);
  /* q = M' P */
  void (*project_back)(float *q, const float *m, const float *p, size_t rows, size_t columns,
                       size_t rank);
  /* result = P Q'; m = kept(m, share * result), the kept of f32_keep_error. `result` is only
   * written, so it may be the place of the gradient. */
  void (*expand)(float *result, float *m, const float *p, const float *q, size_t rows,
                 size_t columns, size_t rank, float share);
} lcomm_kernels_lowrank;

/* Makes the vectors of P orthonormal, in their order (Gram-Schmidt, modified), the same bits for
 * the same input on every machine. From each vector its parts along the earlier ones are taken, it
 * gets length 1, and both once more, which takes away what rounding left. Sums and products are
 * those of float64, with 8 sums as above. A vector of which less than 2^-20 is left depends on the
 * earlier ones, or is 0: numbers by counter take its place, so that no rank is lost for ever. From
 * the rows'th vector on they are 0. A vector with NaN or Inf becomes NaN, and all after it. */
void lcomm_lowrank_orthonormalise(float *p, size_t rows, size_t rank);

/* The first Q: numbers by counter, the same for the same seed, orthonormal. */
void lcomm_lowrank_start(float *q, size_t columns, size_t rank, uint64_t seed);

#endif

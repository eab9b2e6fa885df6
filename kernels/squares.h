/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_SQUARES_H
#define LCOMM_KERNELS_SQUARES_H

/* Sums of squares, for norms, have the same bits everywhere because the order of their additions is
 * fixed. All in float64:
 *
 * - values are cut into pieces of LCOMM_SQUARES_PIECE; in a piece there are LCOMM_SQUARES_LANES
 *   sums, and value i joins sum i % LCOMM_SQUARES_LANES, one after the other;
 * - of four neighbouring sums s, (s[0] + s[1]) + (s[2] + s[3]); of the LCOMM_SQUARES_THREADS
 *   results the second half is added to the first one, until one is left: that of the piece;
 * - pieces p join LCOMM_SQUARES_SUMS sums, number p % LCOMM_SQUARES_SUMS;
 * - these join LCOMM_SQUARES_THREADS sums, number i % LCOMM_SQUARES_THREADS, which are halved
 *   likewise;
 * - several arrays: one after the other.
 *
 * NaN and Inf count as 0. Squares of float64 may be beyond its range, so of that type the squares
 * of values times LCOMM_SQUARES_UNIT are summed as well. */

enum {
  LCOMM_SQUARES_PIECE = 16384,
  LCOMM_SQUARES_LANES = 1024,
  LCOMM_SQUARES_THREADS = LCOMM_SQUARES_LANES / 4,
  LCOMM_SQUARES_SUMS = 512
};

#define LCOMM_SQUARES_UNIT 0x1p-600

#endif

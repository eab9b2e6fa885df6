/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_PLAIN_INTEGER_H
#define LCOMM_KERNELS_PLAIN_INTEGER_H

/* Plain integers: sums that wrap around, minima and maxima. The file that includes
 * this defines lcomm_value, lcomm_unsigned, the unsigned type of its size, and PLAIN_TABLE
 * (plain_body.h). */

static inline lcomm_value sum(lcomm_value a, lcomm_value b) {
  return (lcomm_value)((lcomm_unsigned)a + (lcomm_unsigned)b);
}

static inline lcomm_value least(lcomm_value a, lcomm_value b) {
  return a < b ? a : b;
}

static inline lcomm_value greatest(lcomm_value a, lcomm_value b) {
  return a > b ? a : b;
}

#include "kernels/plain_body.h"

#endif

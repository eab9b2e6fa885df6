/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Plain uint8: sums that wrap around, minima and maxima. */

#include <stdint.h>

typedef uint8_t lcomm_value;

static inline lcomm_value sum(lcomm_value a, lcomm_value b) {
  return (lcomm_value)((uint8_t)a + (uint8_t)b);
}

static inline lcomm_value least(lcomm_value a, lcomm_value b) {
  return a < b ? a : b;
}

static inline lcomm_value greatest(lcomm_value a, lcomm_value b) {
  return a > b ? a : b;
}

#include "kernels/plain_body.h"

const lcomm_plain_kernel lcomm_plain_u8[LCOMM_PLAIN_OPS] = {
    [LCOMM_PLAIN_SUM] = sum_all,
    [LCOMM_PLAIN_MIN] = least_of_all,
    [LCOMM_PLAIN_MAX] = greatest_of_all,
};

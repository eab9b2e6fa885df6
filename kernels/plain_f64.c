/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The plain kernels of float64. */

#include <stdint.h>

typedef double lcomm_value;
typedef uint64_t lcomm_bits;

#include "kernels/plain_float.h"

const lcomm_plain_kernel lcomm_plain_f64[LCOMM_PLAIN_OPS] = {
    [LCOMM_PLAIN_SUM] = sum_all,
    [LCOMM_PLAIN_MIN] = least_of_all,
    [LCOMM_PLAIN_MAX] = greatest_of_all,
};

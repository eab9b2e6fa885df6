/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The plain kernels of int8. */

#include <stdint.h>

typedef int8_t lcomm_value;
typedef uint8_t lcomm_unsigned;

#include "kernels/plain_integer.h"

const lcomm_plain_kernel lcomm_plain_i8[LCOMM_PLAIN_OPS] = {
    [LCOMM_PLAIN_SUM] = sum_all,
    [LCOMM_PLAIN_MIN] = least_of_all,
    [LCOMM_PLAIN_MAX] = greatest_of_all,
};

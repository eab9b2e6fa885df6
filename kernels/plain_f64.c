/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The plain kernels of float64. */

#include <stdint.h>

typedef double lcomm_value;
typedef uint64_t lcomm_bits;
#define PLAIN_TABLE lcomm_plain_f64

#include "kernels/plain_float.h"

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The plain kernels of int64. */

#include <stdint.h>

typedef int64_t lcomm_value;
typedef uint64_t lcomm_unsigned;
#define PLAIN_TABLE lcomm_plain_i64

#include "kernels/plain_integer.h"

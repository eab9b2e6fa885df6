/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The plain kernels of int32. */

#include <stdint.h>

typedef int32_t lcomm_value;
typedef uint32_t lcomm_unsigned;
#define PLAIN_TABLE lcomm_plain_i32

#include "kernels/plain_integer.h"

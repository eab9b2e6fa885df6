/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The plain kernels of int8. */

#include <stdint.h>

typedef int8_t lcomm_value;
typedef uint8_t lcomm_unsigned;
#define PLAIN_TABLE lcomm_plain_i8

#include "kernels/plain_integer.h"

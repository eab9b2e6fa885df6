/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The plain kernels of uint8. */

#include <stdint.h>

typedef uint8_t lcomm_value;
typedef uint8_t lcomm_unsigned;
#define PLAIN_TABLE lcomm_plain_u8

#include "kernels/plain_integer.h"

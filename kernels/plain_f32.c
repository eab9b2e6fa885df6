/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The plain kernels of float32. */

#include <stdint.h>

typedef float lcomm_value;
typedef uint32_t lcomm_bits;
#define PLAIN_TABLE lcomm_plain_f32

#include "kernels/plain_float.h"

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_PLAIN_TYPES_H
#define LCOMM_KERNELS_PLAIN_TYPES_H

/* The plain kernels of each type, by lcomm_plain_op; each type in a file of
 * its own. */

#include "kernels/plain.h"

enum { LCOMM_PLAIN_OPS = LCOMM_PLAIN_MAX + 1 };

extern const lcomm_plain_kernel lcomm_plain_f32[LCOMM_PLAIN_OPS];
extern const lcomm_plain_kernel lcomm_plain_f64[LCOMM_PLAIN_OPS];
extern const lcomm_plain_kernel lcomm_plain_i32[LCOMM_PLAIN_OPS];
extern const lcomm_plain_kernel lcomm_plain_i64[LCOMM_PLAIN_OPS];
extern const lcomm_plain_kernel lcomm_plain_i8[LCOMM_PLAIN_OPS];
extern const lcomm_plain_kernel lcomm_plain_u8[LCOMM_PLAIN_OPS];

#endif

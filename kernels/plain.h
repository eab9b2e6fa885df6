/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_PLAIN_H
#define LCOMM_KERNELS_PLAIN_H

/* Sums, minima and maxima of values as they are, without a codec. */

#include <stddef.h>

#include "libcomm/include/libcomm_types.h"

typedef enum lcomm_plain_op { LCOMM_PLAIN_SUM, LCOMM_PLAIN_MIN, LCOMM_PLAIN_MAX } lcomm_plain_op;

/* destination[i] = op over j of sources[j][i], in list order, for n elements.
 * `destination` may be one of the sources. Integers wrap around. Of minima and
 * maxima, a NaN wins (the first one in list order, with its bits as they are),
 * and -0 counts as less than +0. So the result does not depend on how sources
 * are grouped, but for which NaN it is. count >= 1. Aligned to the element. */
typedef void (*lcomm_plain_kernel)(const void *const *sources, size_t count, void *destination,
                                   size_t n);

/* For float32, float64 and the integers; NULL for the 16-bit types, whose
 * arithmetic is done in float32. Sums of float32 have the bits of the kernel
 * table's f32_sum. */
lcomm_plain_kernel lcomm_plain_kernel_of(lcomm_dtype dtype, lcomm_plain_op op);

/* mean[i] = keep * before[i] + take * values[i] (three roundings), 0 where that is not finite.
 * before may be mean. */
void lcomm_plain_mean_f32(float keep, const float *before, float take, const float *values,
                          float *mean, size_t n);

/* values[i] = values[i] * factor, and values[i] / divisor towards zero, for a
 * divisor > 0. */
void lcomm_plain_scale_f64(double *values, double factor, size_t n);
void lcomm_plain_divide_i32(int32_t *values, int32_t divisor, size_t n);
void lcomm_plain_divide_i64(int64_t *values, int64_t divisor, size_t n);
void lcomm_plain_divide_i8(int8_t *values, int32_t divisor, size_t n);
void lcomm_plain_divide_u8(uint8_t *values, int32_t divisor, size_t n);

#endif

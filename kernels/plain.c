/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The plain kernel of a type and an operation, and the loops over one array. */

#include "kernels/plain.h"

#include "kernels/element.h"
#include "kernels/plain_types.h"

lcomm_plain_kernel lcomm_plain_kernel_of(lcomm_dtype dtype, lcomm_plain_op op) {
  if ((unsigned)op >= LCOMM_PLAIN_OPS) {
    return NULL;
  }
  switch (dtype) {
  case LCOMM_FLOAT32:
    return lcomm_plain_f32[op];
  case LCOMM_FLOAT64:
    return lcomm_plain_f64[op];
  case LCOMM_INT32:
    return lcomm_plain_i32[op];
  case LCOMM_INT64:
    return lcomm_plain_i64[op];
  case LCOMM_INT8:
    return lcomm_plain_i8[op];
  case LCOMM_UINT8:
    return lcomm_plain_u8[op];
  default:
    return NULL;
  }
}

void lcomm_plain_mean_f32(float keep, const float *before, float take, const float *values,
                          float *mean, size_t n) {
  for (size_t i = 0; i < n; i++) {
    float kept = keep * before[i];
    float taken = take * values[i];
    mean[i] = lcomm_finite_or_zero(kept + taken);
  }
}

void lcomm_plain_scale_f64(double *values, double factor, size_t n) {
  for (size_t i = 0; i < n; i++) {
    values[i] *= factor;
  }
}

/* In double precision, for which there are vector divisions. The result is exact: a
 * quotient that is no integer differs from one by 1 / divisor at least, and rounding a
 * number below 2^31 to 53 bits changes it by less. */
void lcomm_plain_divide_i32(int32_t *values, int32_t divisor, size_t n) {
  double by = divisor;
  for (size_t i = 0; i < n; i++) {
    values[i] = (int32_t)(values[i] / by);
  }
}

void lcomm_plain_divide_i64(int64_t *values, int64_t divisor, size_t n) {
  for (size_t i = 0; i < n; i++) {
    values[i] /= divisor;
  }
}

/* A divisor beyond the type's range makes every quotient 0, but for -128 / 128. */
void lcomm_plain_divide_i8(int8_t *values, int32_t divisor, size_t n) {
  for (size_t i = 0; i < n; i++) {
    values[i] = (int8_t)(values[i] / divisor);
  }
}

void lcomm_plain_divide_u8(uint8_t *values, int32_t divisor, size_t n) {
  for (size_t i = 0; i < n; i++) {
    values[i] = (uint8_t)(values[i] / divisor);
  }
}

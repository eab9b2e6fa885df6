/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_NAN_CUH
#define LCOMM_KERNELS_CUDA_CUDA_NAN_CUH

/* Sums and products whose NaNs have the bytes that the scalar table gives on
 * x86-64. A device returns its canonical NaN for every NaN. A processor returns the
 * operand with its quiet bit set (the first one, when both are NaN), and a negative
 * NaN for invalid operations (Inf - Inf, 0 * Inf). */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/element.h"

/* The bits of the NaN that an operation on `a` and `b` gives. */
LCOMM_DEVICE uint32_t lcomm_nan_f32(float a, float b) {
  uint32_t handed_on = (a != a ? lcomm_f32_bits(a) : lcomm_f32_bits(b)) | 0x00400000u;
  return a != a || b != b ? handed_on : 0xffc00000u;
}

LCOMM_DEVICE uint64_t lcomm_nan_f64(double a, double b) {
  uint64_t handed_on = (a != a ? lcomm_f64_bits(a) : lcomm_f64_bits(b)) | 0x0008000000000000u;
  return a != a || b != b ? handed_on : 0xfff8000000000000u;
}

LCOMM_DEVICE float lcomm_sum_f32(float a, float b) {
  float sum = a + b;
  return sum == sum ? sum : lcomm_f32_from_bits(lcomm_nan_f32(a, b));
}

LCOMM_DEVICE float lcomm_product_f32(float a, float b) {
  float product = a * b;
  return product == product ? product : lcomm_f32_from_bits(lcomm_nan_f32(a, b));
}

LCOMM_DEVICE double lcomm_sum_f64(double a, double b) {
  double sum = a + b;
  return sum == sum ? sum : lcomm_f64_from_bits(lcomm_nan_f64(a, b));
}

LCOMM_DEVICE double lcomm_product_f64(double a, double b) {
  double product = a * b;
  return product == product ? product : lcomm_f64_from_bits(lcomm_nan_f64(a, b));
}

#endif

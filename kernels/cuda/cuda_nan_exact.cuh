/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_NAN_EXACT_CUH
#define LCOMM_KERNELS_CUDA_CUDA_NAN_EXACT_CUH

/* Exact NaN: operations on one element that give the NaN bits of a processor
 * (kernels/cuda/cuda_nan.cuh), and minima and maxima as kernels/plain.h defines them.
 * Slow; used again for elements whose fast result is NaN. */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_nan.cuh"
#include "kernels/cuda/cuda_values.cuh"

/* As a comparison of floats, of which a device does two at once. */
LCOMM_DEVICE int lcomm_is_nan(float value) {
  return value != value;
}

/* Integers in the order of the numbers, -0 below +0. */
LCOMM_DEVICE int32_t lcomm_rank(float value) {
  int32_t bits = (int32_t)lcomm_f32_bits(value);
  return bits < 0 ? bits ^ 0x7fffffff : bits;
}

/* The first NaN, or the smaller one. */
LCOMM_DEVICE float lcomm_least(float a, float b) {
  float least = lcomm_rank(b) < lcomm_rank(a) ? b : a;
  least = lcomm_is_nan(b) ? b : least;
  return lcomm_is_nan(a) ? a : least;
}

LCOMM_DEVICE float lcomm_greatest(float a, float b) {
  float greatest = lcomm_rank(b) > lcomm_rank(a) ? b : a;
  greatest = lcomm_is_nan(b) ? b : greatest;
  return lcomm_is_nan(a) ? a : greatest;
}

/* The identity element of an operation. */
LCOMM_DEVICE float lcomm_identity(int op) {
  if (op == LCOMM_CUDA_SUM) {
    return -0.0f;
  }
  return lcomm_f32_from_bits(op == LCOMM_CUDA_MIN ? 0x7f800000u : 0xff800000u);
}

LCOMM_DEVICE float lcomm_nan_exact_op(int op, float a, float b) {
  if (op == LCOMM_CUDA_SUM) {
    return lcomm_sum_f32(a, b);
  }
  return op == LCOMM_CUDA_MIN ? lcomm_least(a, b) : lcomm_greatest(a, b);
}

/* ------------------------------------------------------------- one element */

/* Element i as its code says, without the scale. */
LCOMM_DEVICE float lcomm_element_of(int kind, const void *code, uint64_t i) {
  const uint8_t *bytes = (const uint8_t *)code;
  switch (kind) {
  case LCOMM_CUDA_E4M3:
    return lcomm_e4m3_to_f32(bytes[i]);
  case LCOMM_CUDA_E5M2:
    return lcomm_e5m2_to_f32(bytes[i]);
  case LCOMM_CUDA_INT8:
    return (float)(int8_t)bytes[i];
  case LCOMM_CUDA_INT4:
    return (float)(i % 2 == 0 ? lcomm_int4_even(bytes[i / 2]) : lcomm_int4_odd(bytes[i / 2]));
  case LCOMM_CUDA_SIGN:
    return lcomm_lowbit_to_f32((uint32_t)bytes[i / 8] >> i % 8 & 1);
  case LCOMM_CUDA_INT2:
    return lcomm_lowbit_to_f32((uint32_t)bytes[i / 4] >> i % 4 * 2 & 3);
  case LCOMM_CUDA_BF16:
    return lcomm_bf16_to_f32(((const uint16_t *)code)[i]);
  default:
    return lcomm_f16_to_f32(((const uint16_t *)code)[i]);
  }
}

/* The scale of element i; `factor` is part of that of F16. */
LCOMM_DEVICE float lcomm_unit_of(int kind, const void *scale, uint32_t shift, float factor,
                                 uint64_t i) {
  if (lcomm_has_byte_scales(kind)) {
    return lcomm_scale_value(kind, ((const uint8_t *)scale)[i >> shift]);
  }
  if (lcomm_has_float_scales(kind)) {
    return ((const float *)scale)[i >> shift];
  }
  if (kind == LCOMM_CUDA_F16 && scale) {
    return lcomm_product_f32(factor, *(const float *)scale);
  }
  return kind == LCOMM_CUDA_F16 ? factor : 1.0f;
}

#endif

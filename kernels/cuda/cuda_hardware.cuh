/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_HARDWARE_CUH
#define LCOMM_KERNELS_CUDA_CUDA_HARDWARE_CUH

/* Instructions of a device for four neighbouring elements, where they give the
 * bits of kernels/element.h. NaN is the exception, because a device has one canonical
 * NaN: each function says whether its result is right for NaN; where it is not, the
 * caller repeats the element with cuda_nan_exact.cuh. Tests replace this header as they do
 * cuda_grid.cuh.
 */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/element.h"

/* Before a loop: its body is repeated for every turn, so that arrays indexed by
 * the turn stay in registers; or never, because it is long and seldom reached. */
#define LCOMM_UNROLL _Pragma("unroll")
#define LCOMM_ROLLED _Pragma("unroll 1")

/* ------------------------------------------------------------------- memory */

/* 4 and 2 bytes as load4_once and store4_once of cuda_grid.cuh. */

LCOMM_DEVICE uint32_t lcomm_load_4_bytes_once(const void *p) {
  return __ldcs((const unsigned int *)p);
}

LCOMM_DEVICE uint32_t lcomm_load_2_bytes_once(const void *p) {
  return __ldcs((const unsigned short *)p);
}

LCOMM_DEVICE uint32_t lcomm_load_1_byte_once(const void *p) {
  return __ldcs((const unsigned char *)p);
}

LCOMM_DEVICE void lcomm_store_4_bytes_once(void *p, uint32_t value) {
  __stcs((unsigned int *)p, value);
}

LCOMM_DEVICE void lcomm_store_2_bytes_once(void *p, uint32_t value) {
  __stcs((unsigned short *)p, (unsigned short)value);
}

/* ------------------------------------------------------------- the host's memory */

/* A number in pinned memory, which the host and other devices write and read meanwhile: what was
 * written before it is seen after it. */

LCOMM_DEVICE uint32_t lcomm_load_of_host(const uint32_t *place) {
  uint32_t value = *(const volatile uint32_t *)place;
  __threadfence_system();
  return value;
}

LCOMM_DEVICE const uint8_t *lcomm_load_place_of_host(const uint8_t *const *place) {
  return *(const uint8_t *const volatile *)place;
}

LCOMM_DEVICE void lcomm_store_for_host(uint32_t *place, uint32_t value) {
  __threadfence_system();
  *(volatile uint32_t *)place = value;
}

/* Between two looks. */
LCOMM_DEVICE void lcomm_pause(void) {
#if __CUDA_ARCH__ >= 700
  __nanosleep(200);
#endif
}

/* ------------------------------------------------------------------- decode */

/* Exact for every code but NaN, which gives some NaN: float32 holds all numbers
 * of these formats, subnormal ones too, so there is nothing to round. */

LCOMM_DEVICE void lcomm_f16_pair(uint32_t pair, float value[2]) {
  asm("{\n\t.reg .b16 low, high;\n\t"
      "mov.b32 {low, high}, %2;\n\t"
      "cvt.f32.f16 %0, low;\n\t"
      "cvt.f32.f16 %1, high;\n\t}"
      : "=f"(value[0]), "=f"(value[1])
      : "r"(pair));
}

LCOMM_DEVICE void lcomm_f16_values(lcomm_vec2 code, float value[4]) {
  lcomm_f16_pair(code.x, value);
  lcomm_f16_pair(code.y, value + 2);
}

/* The upper half of a float16 is an E5M2. */
LCOMM_DEVICE void lcomm_e5m2_values(uint32_t code, float value[4]) {
  lcomm_f16_pair(__byte_perm(code, 0, 0x1404), value);
  lcomm_f16_pair(__byte_perm(code, 0, 0x3424), value + 2);
}

#if __CUDA_ARCH__ >= 890
LCOMM_DEVICE void lcomm_e4m3_pair(uint32_t pair, float value[2]) {
  uint32_t halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"((unsigned short)pair));
  lcomm_f16_pair(halves, value);
}

LCOMM_DEVICE void lcomm_e4m3_values(uint32_t code, float value[4]) {
  lcomm_e4m3_pair(code & 0xffffu, value);
  lcomm_e4m3_pair(code >> 16, value + 2);
}
#else
LCOMM_DEVICE void lcomm_e4m3_values(uint32_t code, float value[4]) {
  LCOMM_UNROLL for (int i = 0; i < 4; i++) {
    value[i] = lcomm_e4m3_to_f32((uint8_t)(code >> 8 * i));
  }
}
#endif

/* A small number c >= 0 in the low bits of 2^23 makes it 2^23 + c. The sign bits
 * are turned over first, so that c is the code plus 128. */
LCOMM_DEVICE void lcomm_int8_values(uint32_t code, float value[4]) {
  uint32_t raised = code ^ 0x80808080u;
  LCOMM_UNROLL for (int i = 0; i < 4; i++) {
    value[i] = lcomm_f32_from_bits(__byte_perm(raised, 0x4b000000u, 0x7540u + i)) - 8388736.0f;
  }
}

LCOMM_DEVICE void lcomm_int4_values(uint32_t code, float value[4]) {
  LCOMM_UNROLL for (int i = 0; i < 4; i++) {
    value[i] = lcomm_f32_from_bits((code >> 4 * i & 0xfu) ^ 0x4b000008u) - 8388616.0f;
  }
}

/* ------------------------------------------------------------------- encode */

/* Rounds to nearest even, keeps subnormal codes and the sign of zero, and makes
 * 65520 and above infinite, as lcomm_f32_to_f16 does; a NaN gives some NaN. */
LCOMM_DEVICE uint32_t lcomm_f16_pair_code(const float value[2]) {
  uint32_t pair;
  asm("{\n\t.reg .b16 low, high;\n\t"
      "cvt.rn.f16.f32 low, %1;\n\t"
      "cvt.rn.f16.f32 high, %2;\n\t"
      "mov.b32 %0, {low, high};\n\t}"
      : "=r"(pair)
      : "f"(value[0]), "f"(value[1]));
  return pair;
}

LCOMM_DEVICE lcomm_vec2 lcomm_f16_codes(const float value[4]) {
  lcomm_vec2 code = {lcomm_f16_pair_code(value), lcomm_f16_pair_code(value + 2)};
  return code;
}

/* As lcomm_f32_to_bf16; a NaN gives some NaN. */
#if __CUDA_ARCH__ >= 800
LCOMM_DEVICE uint32_t lcomm_bf16_pair_code(const float value[2]) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(value[0]), "f"(value[1]));
  return pair;
}
#else
LCOMM_DEVICE uint32_t lcomm_bf16_pair_code(const float value[2]) {
  return lcomm_f32_to_bf16(value[0]) | (uint32_t)lcomm_f32_to_bf16(value[1]) << 16;
}
#endif

LCOMM_DEVICE lcomm_vec2 lcomm_bf16_codes(const float value[4]) {
  lcomm_vec2 code = {lcomm_bf16_pair_code(value), lcomm_bf16_pair_code(value + 2)};
  return code;
}

/* fp8, for magnitudes up to the largest finite number of the format: what the
 * instruction does with larger ones and with NaN is of no concern then. Below, it
 * rounds to nearest even on the format's own steps, which are equal in its
 * subnormal range, and keeps the sign of zero: the same function as
 * lcomm_f32_to_small, which lets an addition round on these steps. */
#if __CUDA_ARCH__ >= 890
LCOMM_DEVICE uint32_t lcomm_e4m3_codes(const float value[4]) {
  uint32_t code;
  asm("{\n\t.reg .b16 low, high;\n\t"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n\t"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n\t"
      "mov.b32 %0, {low, high};\n\t}"
      : "=r"(code)
      : "f"(value[0]), "f"(value[1]), "f"(value[2]), "f"(value[3]));
  return code;
}

LCOMM_DEVICE uint32_t lcomm_e5m2_codes(const float value[4]) {
  uint32_t code;
  asm("{\n\t.reg .b16 low, high;\n\t"
      "cvt.rn.satfinite.e5m2x2.f32 low, %2, %1;\n\t"
      "cvt.rn.satfinite.e5m2x2.f32 high, %4, %3;\n\t"
      "mov.b32 %0, {low, high};\n\t}"
      : "=r"(code)
      : "f"(value[0]), "f"(value[1]), "f"(value[2]), "f"(value[3]));
  return code;
}
#else
LCOMM_DEVICE uint32_t lcomm_e4m3_codes(const float value[4]) {
  uint32_t code = 0;
  LCOMM_UNROLL for (int i = 0; i < 4; i++) {
    code |= (uint32_t)lcomm_f32_to_e4m3(value[i]) << 8 * i;
  }
  return code;
}

LCOMM_DEVICE uint32_t lcomm_e5m2_codes(const float value[4]) {
  uint32_t code = 0;
  LCOMM_UNROLL for (int i = 0; i < 4; i++) {
    code |= (uint32_t)lcomm_f32_to_e5m2(value[i]) << 8 * i;
  }
  return code;
}
#endif

/* As lcomm_f32_to_int8: the low byte of the sum. */
LCOMM_DEVICE uint32_t lcomm_int8_codes(const float value[4]) {
  uint32_t sum[4];
  LCOMM_UNROLL for (int i = 0; i < 4; i++) {
    sum[i] = lcomm_f32_bits(value[i] + 12582912.0f);
  }
  return __byte_perm(__byte_perm(sum[0], sum[1], 0x0040), __byte_perm(sum[2], sum[3], 0x0040),
                     0x5410);
}

#endif

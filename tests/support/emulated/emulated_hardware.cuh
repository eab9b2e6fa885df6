/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_HARDWARE_CUH
#define LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_HARDWARE_CUH

/* What kernels/cuda/cuda_hardware.cuh promises, on a processor: kernels/element.h.
 * Where that promises some NaN, it is another one than element.h gives, because
 * that is what a device does. */

#define LCOMM_KERNELS_CUDA_CUDA_HARDWARE_CUH /* cuda_hardware.cuh is empty from here on */

#include "tests/support/emulated/emulated_grid.cuh"

#include <unistd.h>

#include "kernels/element.h"

#define LCOMM_UNROLL
#define LCOMM_ROLLED

/* ------------------------------------------------------------------- memory */

LCOMM_DEVICE uint32_t lcomm_emulated_load_few(const void *p, size_t size, const char *site) {
  uint32_t value = 0;
  if ((uintptr_t)p % size) {
    lcomm_emulated_misaligned(size, site);
  }
  memcpy(&value, p, size);
  return value;
}

LCOMM_DEVICE void lcomm_emulated_store_few(void *p, uint32_t value, size_t size, const char *site) {
  if ((uintptr_t)p % size) {
    lcomm_emulated_misaligned(size, site);
  }
  memcpy(p, &value, size);
}

#define lcomm_load_4_bytes_once(p) lcomm_emulated_load_few(p, 4, LCOMM_SITE)
#define lcomm_load_2_bytes_once(p) lcomm_emulated_load_few(p, 2, LCOMM_SITE)
#define lcomm_load_1_byte_once(p) lcomm_emulated_load_few(p, 1, LCOMM_SITE)
#define lcomm_store_4_bytes_once(p, value) lcomm_emulated_store_few(p, value, 4, LCOMM_SITE)
#define lcomm_store_2_bytes_once(p, value) lcomm_emulated_store_few(p, value, 2, LCOMM_SITE)

/* ------------------------------------------------------------- the host's memory */

LCOMM_DEVICE uint32_t lcomm_load_of_host(const uint32_t *place) {
  return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}

LCOMM_DEVICE const uint8_t *lcomm_load_place_of_host(const uint8_t *const *place) {
  return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}

LCOMM_DEVICE void lcomm_store_for_host(uint32_t *place, uint32_t value) {
  __atomic_store_n(place, value, __ATOMIC_RELEASE);
}

/* Other grids run meanwhile. */
LCOMM_DEVICE void lcomm_pause(void) {
  lcomm_emulated_leave_shared();
  usleep(50);
  lcomm_emulated_enter_shared();
}

/* ------------------------------------------------------------------- decode */

/* The one NaN of a device. */
LCOMM_DEVICE float lcomm_emulated_nan(float value) {
  return value != value ? lcomm_f32_from_bits(0x7fffffffu) : value;
}

LCOMM_DEVICE void lcomm_f16_values(lcomm_vec2 code, float value[4]) {
  for (int i = 0; i < 4; i++) {
    uint32_t pair = i < 2 ? code.x : code.y;
    value[i] = lcomm_emulated_nan(lcomm_f16_to_f32((uint16_t)(pair >> 16 * (i % 2))));
  }
}

LCOMM_DEVICE void lcomm_e4m3_values(uint32_t code, float value[4]) {
  for (int i = 0; i < 4; i++) {
    value[i] = lcomm_emulated_nan(lcomm_e4m3_to_f32((uint8_t)(code >> 8 * i)));
  }
}

LCOMM_DEVICE void lcomm_e5m2_values(uint32_t code, float value[4]) {
  for (int i = 0; i < 4; i++) {
    value[i] = lcomm_emulated_nan(lcomm_e5m2_to_f32((uint8_t)(code >> 8 * i)));
  }
}

LCOMM_DEVICE void lcomm_int8_values(uint32_t code, float value[4]) {
  for (int i = 0; i < 4; i++) {
    value[i] = (float)(int8_t)(uint8_t)(code >> 8 * i);
  }
}

LCOMM_DEVICE void lcomm_int4_values(uint32_t code, float value[4]) {
  for (int i = 0; i < 4; i++) {
    uint8_t byte = (uint8_t)(code >> 8 * (i / 2));
    value[i] = (float)(i % 2 == 0 ? lcomm_int4_even(byte) : lcomm_int4_odd(byte));
  }
}

/* ------------------------------------------------------------------- encode */

/* Of a NaN some NaN. */
LCOMM_DEVICE lcomm_vec2 lcomm_emulated_codes(const float value[4], uint16_t (*code_of)(float)) {
  uint32_t code[4];
  for (int i = 0; i < 4; i++) {
    code[i] = value[i] != value[i] ? 0x7fffu : code_of(value[i]);
  }
  lcomm_vec2 both = {code[0] | code[1] << 16, code[2] | code[3] << 16};
  return both;
}

LCOMM_DEVICE lcomm_vec2 lcomm_f16_codes(const float value[4]) {
  return lcomm_emulated_codes(value, lcomm_f32_to_f16);
}

LCOMM_DEVICE lcomm_vec2 lcomm_bf16_codes(const float value[4]) {
  return lcomm_emulated_codes(value, lcomm_f32_to_bf16);
}

LCOMM_DEVICE uint32_t lcomm_e4m3_codes(const float value[4]) {
  uint32_t code = 0;
  for (int i = 0; i < 4; i++) {
    code |= (uint32_t)lcomm_f32_to_e4m3(value[i]) << 8 * i;
  }
  return code;
}

LCOMM_DEVICE uint32_t lcomm_e5m2_codes(const float value[4]) {
  uint32_t code = 0;
  for (int i = 0; i < 4; i++) {
    code |= (uint32_t)lcomm_f32_to_e5m2(value[i]) << 8 * i;
  }
  return code;
}

LCOMM_DEVICE uint32_t lcomm_int8_codes(const float value[4]) {
  uint32_t code = 0;
  for (int i = 0; i < 4; i++) {
    code |= (uint32_t)(uint8_t)lcomm_f32_to_int8(value[i]) << 8 * i;
  }
  return code;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_LOWBIT_H
#define LCOMM_KERNELS_LOWBIT_H

/* The maths of sign and int2, shared by the C kernels and the CUDA kernels; as kernels/element.h.
 */

#include "kernels/element.h"

/* The scale of a block is 2^(byte-127), 0 for the byte 0, NaN for 255. */
LCOMM_ELEMENT float lcomm_lowbit_scale_to_f32(uint8_t byte) {
  return lcomm_f32_from_bits(byte == LCOMM_E8M0_NAN ? LCOMM_F32_NAN_BITS : (uint32_t)byte << 23);
}

/* 1, -1, 4, -4 for the codes 0..3; sign has the first two. */
LCOMM_ELEMENT float lcomm_lowbit_to_f32(uint32_t code) {
  return lcomm_f32_from_bits((code & 1) << 31 | (0x3f800000u + ((code & 2) << 23)));
}

/* int2: 4 * scale <= amax < 8 * scale; 0 for a block that is sent as zeros. */
LCOMM_ELEMENT uint8_t lcomm_int2_scale(int32_t amax) {
  if (amax >= (int32_t)LCOMM_F32_INF_BITS) {
    return LCOMM_E8M0_NAN;
  }
  return (uint8_t)(amax < LCOMM_INTEGER_TINY_BITS ? 0 : (amax >> 23) - 2);
}

/* Magnitude bits of 2.5 * scale, beyond which a value of int2 is sent as 4 * scale. */
LCOMM_ELEMENT int32_t lcomm_int2_limit(uint8_t byte) {
  return (int32_t)(byte == 0 ? LCOMM_F32_INF_BITS : ((uint32_t)byte + 1) << 23 | 0x200000u);
}

/* sign: the scale is the power of two next to the root mean square. Values are counted in
 * steps, of which the largest magnitude of the block has 64 to 128: squares of whole numbers have
 * one sum, whatever their order is. amax: of a finite block that is not sent as zeros. */
LCOMM_ELEMENT float lcomm_sign_steps_of_one(int32_t amax) {
  return lcomm_f32_from_bits((260u - ((uint32_t)amax >> 23)) << 23);
}

LCOMM_ELEMENT uint32_t lcomm_sign_steps(float value, float steps_of_one) {
  float magnitude = lcomm_f32_from_bits(lcomm_f32_bits(value) & 0x7fffffffu);
  return lcomm_f32_bits(magnitude * steps_of_one + 8388608.0f) - 0x4b000000u;
}

/* 1 / (count * (0.75 * 64)^2), for a block of `count` values: one scale is left for the next
 * larger one at 1.5 times its size. */
LCOMM_ELEMENT float lcomm_sign_share(uint32_t count) {
  return 1.0f / (float)(2304u * count);
}

/* `squares`: the sum of the squares of the steps, of no use where the block is not finite or is
 * sent as zeros. */
LCOMM_ELEMENT uint8_t lcomm_sign_scale(int32_t amax, uint32_t squares, float share) {
  if (amax >= (int32_t)LCOMM_F32_INF_BITS) {
    return LCOMM_E8M0_NAN;
  }
  if (amax < LCOMM_INTEGER_TINY_BITS) {
    return 0;
  }
  /* Half the exponent, rounded down. */
  int32_t half = (int32_t)(((lcomm_f32_bits((float)squares * share) >> 23) + 1) >> 1) - 64;
  int32_t byte = (amax >> 23) + half;
  return (uint8_t)(byte < LCOMM_E8M0_NAN ? byte : LCOMM_E8M0_NAN - 1);
}

#endif

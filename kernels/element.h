/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_ELEMENT_H
#define LCOMM_KERNELS_ELEMENT_H

/* The maths of one element, shared by the C kernels and the CUDA kernels.
 * Integer arithmetic on bit patterns and single IEEE additions only: no maths
 * library, no multiply-add that a compiler could fuse, so every machine that
 * rounds to nearest even produces the same bits. Written without branches on
 * data, so that a compiler can vectorise the loops around it.
 */

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define LCOMM_ELEMENT static __host__ __device__ inline
#else
#define LCOMM_ELEMENT static inline
#endif

/* Magnitude bits of float32 infinity: finite values are below, NaN above. */
#define LCOMM_F32_INF_BITS 0x7f800000u
#define LCOMM_F32_NAN_BITS 0x7fc00000u

LCOMM_ELEMENT uint32_t lcomm_f32_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

LCOMM_ELEMENT float lcomm_f32_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

LCOMM_ELEMENT uint64_t lcomm_f64_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

LCOMM_ELEMENT double lcomm_f64_from_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* The bits without the sign order values by magnitude: NaN > Inf > finite.
 * Signed, because vector units compare signed integers best. */
LCOMM_ELEMENT int32_t lcomm_f32_magnitude(float value) {
  return (int32_t)(lcomm_f32_bits(value) & 0x7fffffffu);
}

LCOMM_ELEMENT int lcomm_f32_is_finite(float value) {
  return lcomm_f32_magnitude(value) < (int32_t)LCOMM_F32_INF_BITS;
}

/* condition ? yes : no, as a mask. A compiler may not move a float operation
 * of an untaken branch (it could raise an exception flag), and then would not
 * vectorise; a mask leaves it nothing to move. */
LCOMM_ELEMENT uint32_t lcomm_pick(int condition, uint32_t yes, uint32_t no) {
  uint32_t mask = 0u - (uint32_t)condition;
  return (yes & mask) | (no & ~mask);
}

/* Keeps the sign and the leading payload bits of a NaN and sets its quiet bit,
 * as x86 F16C does. */
LCOMM_ELEMENT uint16_t lcomm_f32_to_f16(float value) {
  uint32_t bits = lcomm_f32_bits(value);
  int32_t magnitude = lcomm_f32_magnitude(value);
  /* Next to 0.5 one float32 step is 2^-24, the step of f16 subnormals: the
   * addition rounds for us. */
  uint32_t half = 0x3f000000u;
  uint32_t subnormal = lcomm_f32_bits(lcomm_f32_from_bits((uint32_t)magnitude) + 0.5f) - half;
  uint32_t odd = ((uint32_t)magnitude >> 13) & 1;
  uint32_t normal = ((uint32_t)magnitude - (112u << 23) + 0xfffu + odd) >> 13;
  uint32_t nan = 0x7e00u | (((uint32_t)magnitude >> 13) & 0x3ffu);
  uint32_t code = lcomm_pick(magnitude < 0x38800000, subnormal, normal);
  code = lcomm_pick(magnitude >= 0x47800000, 0x7c00u, code);
  code = lcomm_pick(magnitude > (int32_t)LCOMM_F32_INF_BITS, nan, code);
  return (uint16_t)(code | ((bits >> 16) & 0x8000u));
}

LCOMM_ELEMENT float lcomm_f16_to_f32(uint16_t code) {
  int32_t magnitude = code & 0x7fff;
  uint32_t shifted = (uint32_t)magnitude << 13;
  /* A subnormal is read as 2^-14 * 1.f and the 2^-14 taken off again. */
  float subnormal = lcomm_f32_from_bits(shifted + (113u << 23)) - lcomm_f32_from_bits(113u << 23);
  uint32_t bits = shifted + (112u << 23);
  bits = lcomm_pick(magnitude >= 0x7c00, shifted | LCOMM_F32_INF_BITS, bits);
  bits = lcomm_pick(magnitude < 0x0400, lcomm_f32_bits(subnormal), bits);
  return lcomm_f32_from_bits(bits | ((uint32_t)(code & 0x8000) << 16));
}

LCOMM_ELEMENT uint16_t lcomm_f32_to_bf16(float value) {
  uint32_t bits = lcomm_f32_bits(value);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
  uint32_t nan = (bits >> 16) | 0x40u;
  return (uint16_t)(lcomm_f32_magnitude(value) > (int32_t)LCOMM_F32_INF_BITS ? nan : rounded);
}

/* As lcomm_f32_to_bf16, but a finite value never becomes infinite: it stops at
 * the largest finite bf16. */
LCOMM_ELEMENT uint16_t lcomm_f32_to_bf16_finite(float value) {
  uint16_t code = lcomm_f32_to_bf16(value);
  int overflow = lcomm_f32_is_finite(value) && (code & 0x7fff) == 0x7f80;
  return (uint16_t)(overflow ? code - 1 : code);
}

LCOMM_ELEMENT float lcomm_bf16_to_f32(uint16_t code) {
  return lcomm_f32_from_bits((uint32_t)code << 16);
}

/* Round to a small float of `mantissa` bits whose smallest normal number has
 * the float32 exponent field `lowest`. |value| must not exceed the largest
 * finite number of the format, and must not be NaN. */
LCOMM_ELEMENT uint8_t lcomm_f32_to_small(float value, uint32_t mantissa, uint32_t lowest) {
  uint32_t bits = lcomm_f32_bits(value);
  int32_t exponent = (int32_t)(bits & LCOMM_F32_INF_BITS);
  int32_t floor = (int32_t)(lowest << 23);
  exponent = exponent > floor ? exponent : floor;
  /* One float32 step of `magic` is the format's step at this exponent. */
  uint32_t magic = (uint32_t)exponent + ((23 - mantissa) << 23);
  float sum = lcomm_f32_from_bits(bits & 0x7fffffffu) + lcomm_f32_from_bits(magic);
  uint32_t steps = lcomm_f32_bits(sum) - magic;
  uint32_t code = (((uint32_t)(exponent - floor)) >> (23 - mantissa)) + steps;
  return (uint8_t)(code | ((bits >> 24) & 0x80u));
}

LCOMM_ELEMENT uint8_t lcomm_f32_to_e4m3(float value) {
  return lcomm_f32_to_small(value, 3, 121);
}

LCOMM_ELEMENT uint8_t lcomm_f32_to_e5m2(float value) {
  return lcomm_f32_to_small(value, 2, 113);
}

LCOMM_ELEMENT float lcomm_e4m3_to_f32(uint8_t code) {
  int32_t magnitude = code & 0x7f;
  uint32_t shifted = (uint32_t)magnitude << 20;
  float subnormal = lcomm_f32_from_bits(shifted + (121u << 23)) - lcomm_f32_from_bits(121u << 23);
  uint32_t bits = shifted + (120u << 23);
  bits = lcomm_pick(magnitude == 0x7f, LCOMM_F32_NAN_BITS, bits);
  bits = lcomm_pick(magnitude < 8, lcomm_f32_bits(subnormal), bits);
  return lcomm_f32_from_bits(bits | ((uint32_t)(code & 0x80) << 24));
}

LCOMM_ELEMENT float lcomm_e5m2_to_f32(uint8_t code) {
  int32_t magnitude = code & 0x7f;
  uint32_t shifted = (uint32_t)magnitude << 21;
  float subnormal = lcomm_f32_from_bits(shifted + (113u << 23)) - lcomm_f32_from_bits(113u << 23);
  uint32_t bits = shifted + (112u << 23);
  bits = lcomm_pick(magnitude >= 0x7c, shifted | LCOMM_F32_INF_BITS, bits);
  bits = lcomm_pick(magnitude < 4, lcomm_f32_bits(subnormal), bits);
  return lcomm_f32_from_bits(bits | ((uint32_t)(code & 0x80) << 24));
}

/* E8M0: 2^(byte-127), 255 is NaN. */
enum { LCOMM_E8M0_ONE = 127, LCOMM_E8M0_NAN = 255 };

/* The largest number of a format is 1.75 * 2^top. */
enum { LCOMM_E4M3_TOP = 8, LCOMM_E5M2_TOP = 15 };

/* The smallest scale under which a block whose largest magnitude has the bits
 * `amax` fits a format with the largest number 1.75 * 2^top. The scale of a block of zeros is 1;
 * NaN and Inf give 255. */
LCOMM_ELEMENT uint8_t lcomm_e8m0_scale(int32_t amax, int32_t top) {
  if (amax == 0) {
    return LCOMM_E8M0_ONE;
  }
  if (amax >= (int32_t)LCOMM_F32_INF_BITS) {
    return LCOMM_E8M0_NAN;
  }
  int32_t byte = (amax >> 23) - top + ((amax & 0x7fffff) > 0x600000);
  return (uint8_t)(byte > 0 ? byte : 0);
}

LCOMM_ELEMENT float lcomm_e8m0_to_f32(uint8_t byte) {
  uint32_t bits = (uint32_t)byte << 23;
  bits = byte == 0 ? 0x00400000u : bits;
  bits = byte == LCOMM_E8M0_NAN ? LCOMM_F32_NAN_BITS : bits;
  return lcomm_f32_from_bits(bits);
}

/* 1 / scale, exact, for the bytes that lcomm_e8m0_scale gives finite blocks
 * (below 254). */
LCOMM_ELEMENT float lcomm_e8m0_inverse(uint8_t byte) {
  return lcomm_f32_from_bits((uint32_t)(254 - byte) << 23);
}

/* int8 and int4: below this block maximum (2^-119) the scale would be subnormal
 * and its inverse could overflow; the block is sent as zeros. */
#define LCOMM_INTEGER_TINY_BITS 0x04000000

/* |value| must not exceed 127.5. Next to 1.5 * 2^23 one float32 step is 1, and
 * the low byte of the bits is the integer in two's complement. */
LCOMM_ELEMENT int8_t lcomm_f32_to_int8(float value) {
  return (int8_t)(uint8_t)(lcomm_f32_bits(value + 12582912.0f) & 0xffu);
}

/* Two int4 codes in a byte, and back. */
LCOMM_ELEMENT uint8_t lcomm_int4_pack(int8_t even, int8_t odd) {
  return (uint8_t)((even & 0xf) | (odd & 0xf) << 4);
}

LCOMM_ELEMENT int8_t lcomm_int4_even(uint8_t byte) {
  return (int8_t)(((byte & 0xf) ^ 8) - 8);
}

LCOMM_ELEMENT int8_t lcomm_int4_odd(uint8_t byte) {
  return (int8_t)(((byte >> 4) ^ 8) - 8);
}

/* Random numbers by counter: a number depends on the seed and the index of its
 * element alone, so any machine may make any part of them, in any order. */

typedef struct lcomm_random_key {
  uint32_t before, between;
} lcomm_random_key;

/* The key of the 2^32 indices that share the upper half of `index`; the
 * finaliser of splitmix64 (Steele et al. 2014). */
LCOMM_ELEMENT lcomm_random_key lcomm_random_open(uint64_t seed, uint64_t index) {
  uint64_t x = seed + ((index >> 32) + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  lcomm_random_key key = {(uint32_t)x, (uint32_t)(x >> 32)};
  return key;
}

/* 32 bits for the index whose lower half is `index`; a two-round integer mix
 * (Mueller; constants by Wellons) with a second key between the rounds. */
LCOMM_ELEMENT uint32_t lcomm_random_next(lcomm_random_key key, uint32_t index) {
  uint32_t x = index ^ key.before;
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = ((x ^ (x >> 15)) + key.between) * 0x846ca68bu;
  return x ^ (x >> 16);
}

LCOMM_ELEMENT uint32_t lcomm_random(uint64_t seed, uint64_t index) {
  return lcomm_random_next(lcomm_random_open(seed, index), (uint32_t)index);
}

/* As lcomm_f32_to_small, but rounds the magnitude up with the probability of
 * the part that is cut off; `random` is uniform over 32 bits. |value| must not
 * exceed the largest finite number, which then is not exceeded either. */
LCOMM_ELEMENT uint8_t lcomm_f32_to_small_stochastic(float value, uint32_t mantissa, uint32_t lowest,
                                                    uint32_t random) {
  uint32_t cut = 23 - mantissa;
  uint32_t bits = lcomm_f32_bits(value);
  uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t floor = lowest << 23;
  /* Below the smallest normal number the steps are equal: count them in
   * units of 2^-cut steps, which is exact down to the last unit. */
  float units = lcomm_f32_from_bits(magnitude) * lcomm_f32_from_bits((277u - lowest) << 23);
  uint32_t subnormal = (uint32_t)(int32_t)lcomm_f32_from_bits(
      lcomm_pick((int32_t)magnitude < (int32_t)floor, lcomm_f32_bits(units), 0));
  uint32_t normal = magnitude - floor + (1u << 23);
  uint32_t fixed = lcomm_pick((int32_t)magnitude < (int32_t)floor, subnormal, normal);
  uint32_t code = (fixed + (random >> (32 - cut))) >> cut;
  return (uint8_t)(code | ((bits >> 24) & 0x80u));
}

LCOMM_ELEMENT uint8_t lcomm_f32_to_e4m3_stochastic(float value, uint32_t random) {
  return lcomm_f32_to_small_stochastic(value, 3, 121, random);
}

LCOMM_ELEMENT uint8_t lcomm_f32_to_e5m2_stochastic(float value, uint32_t random) {
  return lcomm_f32_to_small_stochastic(value, 2, 113, random);
}

/* What is kept of `value` after `decoded` was sent in its place: all of it when that is NaN,
 * because another value has spoiled the block; nothing when it is Inf, because what has
 * overflowed once would overflow in every step; nothing when the value is not finite. */
LCOMM_ELEMENT float lcomm_error_kept(float value, float decoded) {
  uint32_t difference = lcomm_f32_bits(value - decoded);
  uint32_t bits = lcomm_pick(lcomm_f32_is_finite(decoded), difference, lcomm_f32_bits(value));
  int keeps =
      lcomm_f32_is_finite(value) & (lcomm_f32_magnitude(decoded) != (int32_t)LCOMM_F32_INF_BITS);
  return lcomm_f32_from_bits(lcomm_pick(keeps, bits, 0));
}

LCOMM_ELEMENT float lcomm_finite_or_zero(float value) {
  return lcomm_f32_from_bits(lcomm_pick(lcomm_f32_is_finite(value), lcomm_f32_bits(value), 0));
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/pattern.h"

#include <math.h>
#include <string.h>

/* Significant bits of a type, and the largest rounding of one division. */
static const struct {
  unsigned bits;
  double rounding;
} types[] = {[LCOMM_FLOAT32] = {24, 0x1p-22},
             [LCOMM_FLOAT16] = {11, 0x1p-10},
             [LCOMM_BFLOAT16] = {8, 0x1p-7}};

perf_pattern perf_pattern_make(lcomm_dtype dtype, int ranks) {
  unsigned bits = types[dtype].bits;
  for (int r = 1; r < ranks && bits > 1; r *= 2) {
    bits--; /* the sum of two ranks needs one bit more */
  }
  unsigned mantissa_bits = bits > 15 ? 15 : bits;
  return (perf_pattern){dtype, ranks, mantissa_bits, bits - mantissa_bits + 1};
}

/* Finaliser of MurmurHash3 (public domain). */
static uint32_t mix(uint32_t h) {
  h ^= h >> 16;
  h *= UINT32_C(0x85ebca6b);
  h ^= h >> 13;
  h *= UINT32_C(0xc2b2ae35);
  return h ^ h >> 16;
}

static float value(const perf_pattern *pattern, int rank, uint64_t i) {
  uint32_t h = mix((uint32_t)i * 0x9e3779b1u + (uint32_t)(i >> 32) + (uint32_t)rank * 0x7feb352du);
  int32_t mantissa = (int32_t)(h & ((UINT32_C(1) << pattern->mantissa_bits) - 1));
  uint32_t shift = ((h >> 16 & 0x7fff) * pattern->shift_count) >> 15;
  return (float)(h >> 31 ? -mantissa : mantissa) * (float)(UINT32_C(1) << shift);
}

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Whole numbers of at most 11 bits, so neither rounding nor subnormals. */
static uint16_t whole_to_f16(float x) {
  uint32_t bits = bits_of(x);
  uint32_t sign = bits >> 16 & 0x8000;
  return (uint16_t)(x == 0.0f ? sign : sign | ((bits & 0x7fffffff) - (UINT32_C(112) << 23)) >> 13);
}

static float f16_value(uint16_t h) {
  int exponent = h >> 10 & 31;
  int mantissa = h & 1023;
  float x = exponent == 0    ? ldexpf((float)mantissa, -24)
            : exponent == 31 ? (mantissa != 0 ? NAN : INFINITY)
                             : ldexpf((float)(mantissa + 1024), exponent - 25);
  return h >> 15 ? -x : x;
}

static float element(lcomm_dtype dtype, const void *buffer, uint64_t i) {
  switch (dtype) {
  case LCOMM_FLOAT16:
    return f16_value(((const uint16_t *)buffer)[i]);
  case LCOMM_BFLOAT16:
    return float_of((uint32_t)((const uint16_t *)buffer)[i] << 16);
  default:
    return ((const float *)buffer)[i];
  }
}

void perf_pattern_fill(const perf_pattern *pattern, int rank, void *buffer, uint64_t count) {
  float *f32 = buffer;
  uint16_t *u16 = buffer;
  for (uint64_t i = 0; i < count; i++) {
    float x = value(pattern, rank, i);
    if (pattern->dtype == LCOMM_FLOAT32) {
      f32[i] = x;
    } else {
      u16[i] = pattern->dtype == LCOMM_FLOAT16 ? whole_to_f16(x) : (uint16_t)(bits_of(x) >> 16);
    }
  }
}

perf_difference perf_pattern_compare(const perf_pattern *pattern, lcomm_op op, const void *buffer,
                                     uint64_t first, uint64_t count) {
  perf_difference difference = {0, 0.0, 0.0};
  double scale = op == LCOMM_AVG ? 1.0 / pattern->ranks : 1.0;
  double tolerance = op == LCOMM_AVG ? types[pattern->dtype].rounding : 0.0;
  for (uint64_t i = first; i < first + count; i++) {
    double exact = 0.0;
    for (int rank = 0; rank < pattern->ranks; rank++) {
      exact += (double)value(pattern, rank, i);
    }
    exact *= scale;
    double error = fabs((double)element(pattern->dtype, buffer, i) - exact);
    difference.wrong += !(error <= tolerance * fabs(exact)); /* a NaN is wrong */
    difference.error_square += error * error;
    difference.result_square += exact * exact;
  }
  return difference;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_pattern.h"

#include <math.h>

#include "tools/common/tool_element.h"

/* Bits of the whole numbers that a type holds, as far as they are used here,
 * and the largest rounding of one division. */
static const struct {
  unsigned bits;
  double rounding;
} types[] = {[LCOMM_FLOAT32] = {24, 0x1p-22}, [LCOMM_FLOAT16] = {11, 0x1p-10},
             [LCOMM_BFLOAT16] = {8, 0x1p-7},  [LCOMM_FLOAT64] = {45, 0x1p-51},
             [LCOMM_INT32] = {31, 0.0},       [LCOMM_INT64] = {45, 0.0},
             [LCOMM_INT8] = {7, 0.0},         [LCOMM_UINT8] = {8, 0.0}};

lcomm_perf_pattern lcomm_perf_pattern_make(lcomm_dtype dtype, int ranks) {
  unsigned bits = types[dtype].bits;
  for (int r = 1; r < ranks && bits > 1; r *= 2) {
    bits--; /* the sum of two ranks needs one bit more */
  }
  unsigned mantissa_bits = bits > 15 ? 15 : bits;
  return (lcomm_perf_pattern){dtype, ranks, mantissa_bits, bits - mantissa_bits + 1};
}

/* Finaliser of MurmurHash3 (public domain). */
static uint32_t mix(uint32_t h) {
  h ^= h >> 16;
  h *= UINT32_C(0x85ebca6b);
  h ^= h >> 13;
  h *= UINT32_C(0xc2b2ae35);
  return h ^ h >> 16;
}

/* Element i of what a rank sends. */
static double value(const lcomm_perf_pattern *pattern, int rank, uint64_t i) {
  uint32_t h = mix((uint32_t)i * 0x9e3779b1u + (uint32_t)(i >> 32) + (uint32_t)rank * 0x7feb352du);
  int32_t mantissa = (int32_t)(h & ((UINT32_C(1) << pattern->mantissa_bits) - 1));
  uint32_t shift = ((h >> 16 & 0x7fff) * pattern->shift_count) >> 15;
  int is_negative = h >> 31 && pattern->dtype != LCOMM_UINT8;
  return (double)(is_negative ? -mantissa : mantissa) * (double)(UINT32_C(1) << shift);
}

void lcomm_perf_pattern_fill(const lcomm_perf_pattern *pattern, int rank, void *buffer,
                             uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    tool_element_set(pattern->dtype, buffer, i, value(pattern, rank, i));
  }
}

static double reduced(const lcomm_perf_pattern *pattern, lcomm_op op, uint64_t i) {
  double result = value(pattern, 0, i);
  for (int rank = 1; rank < pattern->ranks; rank++) {
    double x = value(pattern, rank, i);
    result = op == LCOMM_MIN   ? (x < result ? x : result)
             : op == LCOMM_MAX ? (x > result ? x : result)
                               : result + x;
  }
  if (op != LCOMM_AVG) {
    return result;
  }
  int is_whole = LCOMM_DTYPE_IS_WHOLE(pattern->dtype);
  return is_whole ? (double)((int64_t)result / pattern->ranks) : result / pattern->ranks;
}

double lcomm_perf_pattern_exact(const lcomm_perf_pattern *pattern, const lcomm_perf_call *call,
                                int rank, uint64_t i) {
  uint64_t part = (uint64_t)rank * call->count;
  switch (call->collective->kind) {
  case LCOMM_PERF_ALLREDUCE:
    return reduced(pattern, call->op, i);
  case LCOMM_PERF_REDUCE_SCATTER:
    return reduced(pattern, call->op, part + i);
  case LCOMM_PERF_ALLGATHER:
    return value(pattern, (int)(i / call->count), i % call->count);
  case LCOMM_PERF_BROADCAST:
    return value(pattern, call->root, i);
  default:
    return value(pattern, (int)(i / call->count), part + i % call->count);
  }
}

lcomm_perf_difference lcomm_perf_pattern_compare(const lcomm_perf_pattern *pattern,
                                                 const lcomm_perf_call *call, int rank,
                                                 const void *result, uint64_t first,
                                                 uint64_t count) {
  lcomm_perf_difference difference = {0, 0.0, 0.0};
  int is_rounded = call->collective->reduces && call->op == LCOMM_AVG;
  double tolerance = is_rounded ? types[pattern->dtype].rounding : 0.0;
  for (uint64_t i = first; i < first + count; i++) {
    double exact = lcomm_perf_pattern_exact(pattern, call, rank, i);
    double error = fabs(tool_element(pattern->dtype, result, i) - exact);
    difference.wrong += !(error <= tolerance * fabs(exact)); /* a NaN is wrong */
    difference.error_square += error * error;
    difference.result_square += exact * exact;
  }
  return difference;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The division of integers, towards zero. */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_launch.h"
#include "kernels/cuda/cuda_span.cuh"

typedef struct divide_args {
  void *values;
  int64_t divisor;
  lcomm_span span;
} divide_args;

LCOMM_DEVICE uint32_t quotient_i32(uint32_t value, int32_t divisor) {
  return (uint32_t)((int32_t)value / divisor);
}

LCOMM_DEVICE lcomm_vec4 unit_i32(lcomm_vec4 v, int32_t divisor) {
  lcomm_vec4 unit = {quotient_i32(v.x, divisor), quotient_i32(v.y, divisor),
                     quotient_i32(v.z, divisor), quotient_i32(v.w, divisor)};
  return unit;
}

LCOMM_DEVICE lcomm_vec4 unit_i64(lcomm_vec4 v, int64_t divisor) {
  int64_t first = (int64_t)((uint64_t)v.y << 32 | v.x) / divisor;
  int64_t second = (int64_t)((uint64_t)v.w << 32 | v.z) / divisor;
  lcomm_vec4 unit = {(uint32_t)first, (uint32_t)((uint64_t)first >> 32), (uint32_t)second,
                     (uint32_t)((uint64_t)second >> 32)};
  return unit;
}

/* Bytes, four in a word. */
#define UNIT_OF_BYTES(name, type)                                                                  \
  LCOMM_DEVICE uint32_t four_##name(uint32_t word, int32_t divisor) {                              \
    uint32_t four = 0;                                                                             \
    for (uint32_t bits = 0; bits < 32; bits += 8)                                                  \
      four |= (uint32_t)(uint8_t)((type)(uint8_t)(word >> bits) / divisor) << bits;                \
    return four;                                                                                   \
  }                                                                                                \
  LCOMM_DEVICE lcomm_vec4 unit_##name(lcomm_vec4 v, int32_t divisor) {                             \
    lcomm_vec4 unit = {four_##name(v.x, divisor), four_##name(v.y, divisor),                       \
                       four_##name(v.z, divisor), four_##name(v.w, divisor)};                      \
    return unit;                                                                                   \
  }

UNIT_OF_BYTES(i8, int8_t)
UNIT_OF_BYTES(u8, uint8_t)

#define DIVIDE(name, type, divisor_type)                                                           \
  LCOMM_KERNEL(divide_##name, divide_args) {                                                       \
    type *values = (type *)a.values;                                                               \
    divisor_type divisor = (divisor_type)a.divisor;                                                \
    uint8_t *units = (uint8_t *)(values + a.span.head);                                            \
    lcomm_vec4 v[LCOMM_UNITS];                                                                     \
    for (uint64_t first = lcomm_span_first(); first < a.span.units; first += lcomm_span_step()) {  \
      for (uint32_t k = 0; k < LCOMM_UNITS; k++)                                                   \
        v[k] = lcomm_unit_load(units, first + k * LCOMM_SPAN_THREADS, a.span.units);               \
      for (uint32_t k = 0; k < LCOMM_UNITS; k++)                                                   \
        lcomm_unit_store(units, first + k * LCOMM_SPAN_THREADS, a.span.units,                      \
                         unit_##name(v[k], divisor));                                              \
    }                                                                                              \
    for (uint64_t j = lcomm_loose_first(); j < a.span.loose; j += lcomm_loose_step()) {            \
      uint64_t i = lcomm_loose_index(a.span, sizeof(type), j);                                     \
      values[i] = (type)(values[i] / divisor);                                                     \
    }                                                                                              \
  }

DIVIDE(i32, int32_t, int32_t)
DIVIDE(i64, int64_t, int64_t)
DIVIDE(i8, int8_t, int32_t)
DIVIDE(u8, uint8_t, int32_t)

static divide_args division_of(void *values, uint32_t size, int64_t divisor, uint64_t n) {
  const void *array = values;
  divide_args args = {values, divisor, lcomm_span_of(&array, 1, size, n)};
  return args;
}

extern "C" int lcomm_cuda_run_divide_i32(int32_t *values, int32_t divisor, uint64_t n,
                                         void *stream) {
  if (divisor <= 0) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  divide_args args = division_of(values, sizeof *values, divisor, n);
  return LCOMM_LAUNCH(divide_i32, lcomm_span_blocks(args.span), LCOMM_SPAN_THREADS, stream, args);
}

extern "C" int lcomm_cuda_run_divide_i64(int64_t *values, int64_t divisor, uint64_t n,
                                         void *stream) {
  if (divisor <= 0) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  divide_args args = division_of(values, sizeof *values, divisor, n);
  return LCOMM_LAUNCH(divide_i64, lcomm_span_blocks(args.span), LCOMM_SPAN_THREADS, stream, args);
}

extern "C" int lcomm_cuda_run_divide_i8(int8_t *values, int32_t divisor, uint64_t n, void *stream) {
  if (divisor <= 0) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  divide_args args = division_of(values, sizeof *values, divisor, n);
  return LCOMM_LAUNCH(divide_i8, lcomm_span_blocks(args.span), LCOMM_SPAN_THREADS, stream, args);
}

extern "C" int lcomm_cuda_run_divide_u8(uint8_t *values, int32_t divisor, uint64_t n,
                                        void *stream) {
  if (divisor <= 0) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  divide_args args = division_of(values, sizeof *values, divisor, n);
  return LCOMM_LAUNCH(divide_u8, lcomm_span_blocks(args.span), LCOMM_SPAN_THREADS, stream, args);
}

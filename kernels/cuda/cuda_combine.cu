/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sums, minima and maxima of float64 and of integers, with the rules of kernels/plain.h. Everything
 * is done on bits, so that a NaN is handed on as it is. */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_launch.h"
#include "kernels/cuda/cuda_nan.cuh"
#include "kernels/cuda/cuda_span.cuh"

/* ------------------------------------------------------------- two elements */

LCOMM_DEVICE uint64_t f64_sum(uint64_t a, uint64_t b) {
  return lcomm_f64_bits(lcomm_sum_f64(lcomm_f64_from_bits(a), lcomm_f64_from_bits(b)));
}

LCOMM_DEVICE uint64_t f64_product(uint64_t a, double factor) {
  return lcomm_f64_bits(lcomm_product_f64(lcomm_f64_from_bits(a), factor));
}

/* Of equal values, which have the same bits or are zeros of both signs, -0 has all
 * bits of either and +0 those of both. The first NaN wins. */
LCOMM_DEVICE uint64_t f64_min(uint64_t a, uint64_t b) {
  double left = lcomm_f64_from_bits(a), right = lcomm_f64_from_bits(b);
  uint64_t least = left < right ? a : right < left ? b : a | b;
  least = right != right ? b : least;
  return left != left ? a : least;
}

LCOMM_DEVICE uint64_t f64_max(uint64_t a, uint64_t b) {
  double left = lcomm_f64_from_bits(a), right = lcomm_f64_from_bits(b);
  uint64_t greatest = left > right ? a : right > left ? b : a & b;
  greatest = right != right ? b : greatest;
  return left != left ? a : greatest;
}

LCOMM_DEVICE uint64_t i64_sum(uint64_t a, uint64_t b) {
  return a + b;
}

LCOMM_DEVICE uint64_t i64_min(uint64_t a, uint64_t b) {
  return (int64_t)a < (int64_t)b ? a : b;
}

LCOMM_DEVICE uint64_t i64_max(uint64_t a, uint64_t b) {
  return (int64_t)a > (int64_t)b ? a : b;
}

LCOMM_DEVICE uint32_t i32_sum(uint32_t a, uint32_t b) {
  return a + b;
}

LCOMM_DEVICE uint32_t i32_min(uint32_t a, uint32_t b) {
  return (int32_t)a < (int32_t)b ? a : b;
}

LCOMM_DEVICE uint32_t i32_max(uint32_t a, uint32_t b) {
  return (int32_t)a > (int32_t)b ? a : b;
}

LCOMM_DEVICE uint8_t i8_sum(uint8_t a, uint8_t b) {
  return (uint8_t)(a + b);
}

LCOMM_DEVICE uint8_t i8_min(uint8_t a, uint8_t b) {
  return (int8_t)a < (int8_t)b ? a : b;
}

LCOMM_DEVICE uint8_t i8_max(uint8_t a, uint8_t b) {
  return (int8_t)a > (int8_t)b ? a : b;
}

LCOMM_DEVICE uint8_t u8_min(uint8_t a, uint8_t b) {
  return a < b ? a : b;
}

LCOMM_DEVICE uint8_t u8_max(uint8_t a, uint8_t b) {
  return a > b ? a : b;
}

/* ---------------------------------------------------------------- two units */

LCOMM_DEVICE uint64_t wide(uint32_t low, uint32_t high) {
  return (uint64_t)high << 32 | low;
}

LCOMM_DEVICE lcomm_vec4 unit_of_wide(uint64_t first, uint64_t second) {
  lcomm_vec4 unit = {(uint32_t)first, (uint32_t)(first >> 32), (uint32_t)second,
                     (uint32_t)(second >> 32)};
  return unit;
}

#define UNIT_OF_TWO(op)                                                                            \
  LCOMM_DEVICE lcomm_vec4 op##_unit(lcomm_vec4 a, lcomm_vec4 b) {                                  \
    return unit_of_wide(op(wide(a.x, a.y), wide(b.x, b.y)), op(wide(a.z, a.w), wide(b.z, b.w)));   \
  }

#define UNIT_OF_FOUR(op)                                                                           \
  LCOMM_DEVICE lcomm_vec4 op##_unit(lcomm_vec4 a, lcomm_vec4 b) {                                  \
    lcomm_vec4 unit = {op(a.x, b.x), op(a.y, b.y), op(a.z, b.z), op(a.w, b.w)};                    \
    return unit;                                                                                   \
  }

#define UNIT_OF_SIXTEEN(op)                                                                        \
  LCOMM_DEVICE uint32_t op##_four(uint32_t a, uint32_t b) {                                        \
    uint32_t four = 0;                                                                             \
    for (uint32_t bits = 0; bits < 32; bits += 8)                                                  \
      four |= (uint32_t)op((uint8_t)(a >> bits), (uint8_t)(b >> bits)) << bits;                    \
    return four;                                                                                   \
  }                                                                                                \
  LCOMM_DEVICE lcomm_vec4 op##_unit(lcomm_vec4 a, lcomm_vec4 b) {                                  \
    lcomm_vec4 unit = {op##_four(a.x, b.x), op##_four(a.y, b.y), op##_four(a.z, b.z),              \
                       op##_four(a.w, b.w)};                                                       \
    return unit;                                                                                   \
  }

UNIT_OF_TWO(f64_sum)
UNIT_OF_TWO(f64_min)
UNIT_OF_TWO(f64_max)
UNIT_OF_TWO(i64_sum)
UNIT_OF_TWO(i64_min)
UNIT_OF_TWO(i64_max)
UNIT_OF_FOUR(i32_sum)
UNIT_OF_FOUR(i32_min)
UNIT_OF_FOUR(i32_max)
UNIT_OF_SIXTEEN(i8_sum)
UNIT_OF_SIXTEEN(i8_min)
UNIT_OF_SIXTEEN(i8_max)
UNIT_OF_SIXTEEN(u8_min)
UNIT_OF_SIXTEEN(u8_max)

/* -------------------------------------------------------------- many arrays */

typedef struct combine_args {
  const void *sources[LCOMM_CUDA_SOURCES_MAX];
  uint32_t count;
  void *destination;
  double factor;
  lcomm_span span;
} combine_args;

LCOMM_DEVICE lcomm_vec4 scaled_f64(lcomm_vec4 unit, double factor) {
  if (factor == 1) {
    return unit;
  }
  return unit_of_wide(f64_product(wide(unit.x, unit.y), factor),
                      f64_product(wide(unit.z, unit.w), factor));
}

LCOMM_DEVICE lcomm_vec4 not_scaled(lcomm_vec4 unit, double factor) {
  (void)factor;
  return unit;
}

LCOMM_DEVICE uint64_t scaled_one_f64(uint64_t bits, double factor) {
  return factor == 1 ? bits : f64_product(bits, factor);
}

#define NOT_SCALED(bits, factor) (bits)

/* A thread reads its elements of all sources before it writes one, as the
 * destination may be a source; no other thread touches them. */
#define COMBINE(op, bits_type, unit_scale, one_scale)                                              \
  LCOMM_KERNEL(combine_##op, combine_args) {                                                       \
    const uint64_t skip = a.span.head * sizeof(bits_type);                                         \
    lcomm_vec4 sum[LCOMM_UNITS];                                                                   \
    for (uint64_t first = lcomm_span_first(); first < a.span.units; first += lcomm_span_step()) {  \
      for (uint32_t k = 0; k < LCOMM_UNITS; k++)                                                   \
        sum[k] = lcomm_unit_load((const uint8_t *)a.sources[0] + skip,                             \
                                 first + k * LCOMM_SPAN_THREADS, a.span.units);                    \
      for (uint32_t s = 1; s < a.count; s++)                                                       \
        for (uint32_t k = 0; k < LCOMM_UNITS; k++)                                                 \
          sum[k] =                                                                                 \
              op##_unit(sum[k], lcomm_unit_load((const uint8_t *)a.sources[s] + skip,              \
                                                first + k * LCOMM_SPAN_THREADS, a.span.units));    \
      for (uint32_t k = 0; k < LCOMM_UNITS; k++)                                                   \
        lcomm_unit_store((uint8_t *)a.destination + skip, first + k * LCOMM_SPAN_THREADS,          \
                         a.span.units, unit_scale(sum[k], a.factor));                              \
    }                                                                                              \
    for (uint64_t j = lcomm_loose_first(); j < a.span.loose; j += lcomm_loose_step()) {            \
      uint64_t i = lcomm_loose_index(a.span, sizeof(bits_type), j);                                \
      bits_type one = ((const bits_type *)a.sources[0])[i];                                        \
      for (uint32_t s = 1; s < a.count; s++)                                                       \
        one = op(one, ((const bits_type *)a.sources[s])[i]);                                       \
      ((bits_type *)a.destination)[i] = one_scale(one, a.factor);                                  \
    }                                                                                              \
  }

COMBINE(f64_sum, uint64_t, scaled_f64, scaled_one_f64)
COMBINE(f64_min, uint64_t, scaled_f64, scaled_one_f64)
COMBINE(f64_max, uint64_t, scaled_f64, scaled_one_f64)
COMBINE(i64_sum, uint64_t, not_scaled, NOT_SCALED)
COMBINE(i64_min, uint64_t, not_scaled, NOT_SCALED)
COMBINE(i64_max, uint64_t, not_scaled, NOT_SCALED)
COMBINE(i32_sum, uint32_t, not_scaled, NOT_SCALED)
COMBINE(i32_min, uint32_t, not_scaled, NOT_SCALED)
COMBINE(i32_max, uint32_t, not_scaled, NOT_SCALED)
COMBINE(i8_sum, uint8_t, not_scaled, NOT_SCALED)
COMBINE(i8_min, uint8_t, not_scaled, NOT_SCALED)
COMBINE(i8_max, uint8_t, not_scaled, NOT_SCALED)
COMBINE(u8_min, uint8_t, not_scaled, NOT_SCALED)
COMBINE(u8_max, uint8_t, not_scaled, NOT_SCALED)

static int launch_combine(lcomm_cuda_plain type, lcomm_cuda_op op, void *stream,
                          const combine_args *args) {
  uint32_t blocks = lcomm_span_blocks(args->span), threads = LCOMM_SPAN_THREADS;
  switch ((int)type * 3 + (int)op) {
  case LCOMM_CUDA_F64 * 3 + LCOMM_CUDA_SUM:
    return LCOMM_LAUNCH(combine_f64_sum, blocks, threads, stream, *args);
  case LCOMM_CUDA_F64 * 3 + LCOMM_CUDA_MIN:
    return LCOMM_LAUNCH(combine_f64_min, blocks, threads, stream, *args);
  case LCOMM_CUDA_F64 * 3 + LCOMM_CUDA_MAX:
    return LCOMM_LAUNCH(combine_f64_max, blocks, threads, stream, *args);
  case LCOMM_CUDA_I64 * 3 + LCOMM_CUDA_SUM:
    return LCOMM_LAUNCH(combine_i64_sum, blocks, threads, stream, *args);
  case LCOMM_CUDA_I64 * 3 + LCOMM_CUDA_MIN:
    return LCOMM_LAUNCH(combine_i64_min, blocks, threads, stream, *args);
  case LCOMM_CUDA_I64 * 3 + LCOMM_CUDA_MAX:
    return LCOMM_LAUNCH(combine_i64_max, blocks, threads, stream, *args);
  case LCOMM_CUDA_I32 * 3 + LCOMM_CUDA_SUM:
    return LCOMM_LAUNCH(combine_i32_sum, blocks, threads, stream, *args);
  case LCOMM_CUDA_I32 * 3 + LCOMM_CUDA_MIN:
    return LCOMM_LAUNCH(combine_i32_min, blocks, threads, stream, *args);
  case LCOMM_CUDA_I32 * 3 + LCOMM_CUDA_MAX:
    return LCOMM_LAUNCH(combine_i32_max, blocks, threads, stream, *args);
  case LCOMM_CUDA_I8 * 3 + LCOMM_CUDA_MIN:
    return LCOMM_LAUNCH(combine_i8_min, blocks, threads, stream, *args);
  case LCOMM_CUDA_I8 * 3 + LCOMM_CUDA_MAX:
    return LCOMM_LAUNCH(combine_i8_max, blocks, threads, stream, *args);
  case LCOMM_CUDA_U8 * 3 + LCOMM_CUDA_MIN:
    return LCOMM_LAUNCH(combine_u8_min, blocks, threads, stream, *args);
  case LCOMM_CUDA_U8 * 3 + LCOMM_CUDA_MAX:
    return LCOMM_LAUNCH(combine_u8_max, blocks, threads, stream, *args);
  default: /* sums of bytes wrap around alike */
    return LCOMM_LAUNCH(combine_i8_sum, blocks, threads, stream, *args);
  }
}

static uint32_t size_of(lcomm_cuda_plain type) {
  switch (type) {
  case LCOMM_CUDA_I32:
    return 4;
  case LCOMM_CUDA_I8:
  case LCOMM_CUDA_U8:
    return 1;
  default:
    return 8;
  }
}

extern "C" int lcomm_cuda_run_combine(const lcomm_cuda_combine *a, void *stream) {
  const void *arrays[LCOMM_CUDA_SOURCES_MAX + 1];
  combine_args args = {{NULL}, a->count, a->destination, a->factor, {0, 0, 0}};
  if (a->count == 0 || a->count > LCOMM_CUDA_SOURCES_MAX || (uint32_t)a->op > LCOMM_CUDA_MAX ||
      (uint32_t)a->type > LCOMM_CUDA_U8) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  for (uint32_t s = 0; s < a->count; s++) {
    arrays[s] = args.sources[s] = a->sources[s];
  }
  arrays[a->count] = a->destination;
  args.span = lcomm_span_of(arrays, a->count + 1, size_of(a->type), a->n);
  return launch_combine(a->type, a->op, stream, &args);
}

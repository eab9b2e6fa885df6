/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_KERNELS_H
#define LCOMM_KERNELS_KERNELS_H

/* The kernel table: the inner loops of all codecs and reductions. Every
 * instruction set fills one const table; the scalar one is the specification,
 * and all others give the same bytes for the same input.
 *
 * Rules for every kernel: no allocation, no state, any n including 0, any
 * alignment that the C type allows, source and destination do not overlap
 * unless a comment says they may be equal. Nothing is assumed about values:
 * NaN, Inf, zeros of both signs and subnormals are all legal.
 */

#include <stddef.h>
#include <stdint.h>

enum { LCOMM_BLOCK = 128 }; /* elements that share one scale */

/* fp8 formats of the OCP 8-bit floating point specification. */
typedef enum lcomm_fp8 { LCOMM_E4M3, LCOMM_E5M2, LCOMM_FP8_COUNT } lcomm_fp8;

typedef struct lcomm_kernels {
  const char *name;

  /* float32 -> 16 bit, round to nearest even; NaN stays NaN (quiet). */
  void (*f32_to_f16)(const float *source, uint16_t *code, size_t n);
  void (*f32_to_bf16)(const float *source, uint16_t *code, size_t n);
  /* destination = factor * value */
  void (*f16_to_f32)(const uint16_t *code, float factor, float *destination, size_t n);
  void (*bf16_to_f32)(const uint16_t *code, float factor, float *destination, size_t n);
  /* destination += factor * value, two roundings (never fused) */
  void (*f16_add)(const uint16_t *code, float factor, float *destination, size_t n);
  void (*bf16_add)(const uint16_t *code, float factor, float *destination, size_t n);

  /* Symmetric int8, one float32 scale for each LCOMM_BLOCK elements, the last
   * block may be short. scale = amax/127; codes -127..127. A block whose amax
   * is below 2^-119 gets scale 0 and codes 0. A block holding Inf gets scale
   * Inf, code +-127 for each Inf and 0 for the others; one holding NaN gets
   * scale NaN and codes 0: no value of either decodes to a finite one. */
  void (*f32_to_int8)(const float *source, int8_t *code, float *scale, size_t n);
  void (*int8_to_f32)(const int8_t *code, const float *scale, float factor, float *destination,
                      size_t n);
  void (*int8_add)(const int8_t *code, const float *scale, float factor, float *destination,
                   size_t n);

  /* fp8 with one E8M0 scale byte (2^(byte-127), 255 = NaN) for each
   * LCOMM_BLOCK elements. The scale is the smallest power of two that keeps
   * the block's largest magnitude representable (rounded up), 2^-127 at the
   * least; a block of zeros gets scale 1. A block holding NaN or Inf gets scale
   * 255 and codes 0, and decodes to NaN. */
  void (*f32_to_fp8[LCOMM_FP8_COUNT])(const float *source, uint8_t *code, uint8_t *scale, size_t n);
  void (*fp8_to_f32[LCOMM_FP8_COUNT])(const uint8_t *code, const uint8_t *scale, float factor,
                                      float *destination, size_t n);
  void (*fp8_add[LCOMM_FP8_COUNT])(const uint8_t *code, const uint8_t *scale, float factor,
                                   float *destination, size_t n);

  /* destination = factor * source; may be equal */
  void (*f32_scale)(const float *source, float factor, float *destination, size_t n);
  /* destination += factor * source, two roundings */
  void (*f32_add)(const float *source, float factor, float *destination, size_t n);
  /* destination[i] = sources[0][i] + sources[1][i] + ... in that order.
   * count >= 1; a source may be equal to destination. */
  void (*f32_sum)(const float *const *sources, size_t count, float *destination, size_t n);

  /* One pass of top-k: for i in 0..n-1
   *   a = source[i] (+ residual[i] when residual is not NULL, and
   *   residual[i] = a); when the magnitude bits of a (bits & 0x7fffffff) are
   *   >= threshold_bits, append first_index + i to index.
   * Stores at most `capacity` indices, returns how many there would have been. */
  size_t (*accumulate_select)(const float *source, float *residual, size_t n,
                              uint32_t threshold_bits, uint32_t first_index, uint32_t *index,
                              size_t capacity);
} lcomm_kernels;

extern const lcomm_kernels lcomm_kernels_scalar;

/* The table used by this process. Never NULL. */
const lcomm_kernels *lcomm_kernels_best(void);

#endif

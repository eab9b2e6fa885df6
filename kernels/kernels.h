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
 * NaN, Inf, zeros of both signs and subnormals are all legal. Where two NaNs
 * meet, in a sum or in the scale and the code of hostile bytes, which of them
 * survives is not specified; that a NaN does is.
 *
 * Kernels compute in the standard floating-point environment: round to
 * nearest even, subnormals kept. A thread that may run in another one is
 * inside lcomm_fp_enter() and lcomm_fp_leave() while it calls them.
 *
 * A call over LCOMM_STREAM_COUNT elements or more is taken to work on memory
 * and not on a cache, and may store past the caches.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/lowrank.h"

enum {
  LCOMM_BLOCK = 128,            /* every format's blocks divide a range of so many elements */
  LCOMM_STREAM_COUNT = 16 << 20 /* 64 MiB of float32 */
};

/* fp8 formats of the OCP 8-bit floating point specification. */
typedef enum lcomm_fp8 { LCOMM_E4M3, LCOMM_E5M2, LCOMM_FP8_COUNT } lcomm_fp8;

/* Formats of one and of two bits per value. */
typedef enum lcomm_lowbit { LCOMM_SIGN, LCOMM_INT2, LCOMM_LOWBIT_COUNT } lcomm_lowbit;

/* One summand of a sum of coded arrays: plain float32 values, or codes. */
typedef struct lcomm_source {
  const float *values; /* of the element the destination begins with, or NULL */
  const void *code;    /* the whole array of codes */
  const float *scale;  /* and of scales, where the format has some */
} lcomm_source;

typedef struct lcomm_kernels_half {
  /* float32 -> 16 bit, round to nearest even; NaN stays NaN (quiet).
   * f16: code = RNE(factor * value), two roundings. */
  void (*f32_to_f16)(const float *source, float factor, uint16_t *code, size_t n);
  void (*f32_to_bf16)(const float *source, uint16_t *code, size_t n);
  /* destination = factor * value */
  void (*f16_to_f32)(const uint16_t *code, float factor, float *destination, size_t n);
  void (*bf16_to_f32)(const uint16_t *code, float factor, float *destination, size_t n);
  /* destination += factor * value, two roundings (never fused) */
  void (*f16_add)(const uint16_t *code, float factor, float *destination, size_t n);
  void (*bf16_add)(const uint16_t *code, float factor, float *destination, size_t n);
} lcomm_kernels_half;

typedef struct lcomm_kernels_f16_block {
  /* f16 with E8M0 scales for blocks of LCOMM_BLOCK: the scale of E5M2, whose
   * range f16 shares; code = RNE(value / scale). */
  void (*f32_to_f16_block)(const float *source, uint16_t *code, uint8_t *scale, size_t n);
  void (*f16_block_to_f32)(const uint16_t *code, const uint8_t *scale, float factor,
                           float *destination, size_t n);
  void (*f16_block_add)(const uint16_t *code, const uint8_t *scale, float factor,
                        float *destination, size_t n);
} lcomm_kernels_f16_block;

typedef struct lcomm_kernels_ef {
  /* Error feedback. kept(v, d) is what is kept of v after d was sent in its
   * place: v - d, but v where d is NaN, and 0 where d is Inf or v is not finite.
   *   f32_keep_error  residual = kept(residual, decoded)
   *   f32_add_error   residual = residual + weight * kept(source, decoded),
   *                   0 where that is not finite
   *   f32_momentum    momentum = factor * before + gradient (two roundings),
   *                   0 where that is not finite; gradient = the same before
   *                   the 0. before may be equal to momentum */
  void (*f32_keep_error)(const float *decoded, float *residual, size_t n);
  void (*f32_add_error)(const float *source, const float *decoded, float weight, float *residual,
                        size_t n);
  void (*f32_momentum)(float factor, const float *before, float *momentum, float *gradient,
                       size_t n);

  /* One pass of top-k: for i in 0..n-1
   *   a = source[i] (+ before[i] when residual is not NULL, and
   *   residual[i] = a; before may be equal to residual); when the magnitude bits of a (bits &
   * 0x7fffffff) are
   *   >= threshold_bits, append first_index + i to index.
   * Stores at most `capacity` indices, returns how many there would have been.
   * Entries of index below `capacity` that were not stored may be overwritten. */
  size_t (*accumulate_select)(const float *source, const float *before, float *residual, size_t n,
                              uint32_t threshold_bits, uint32_t first_index, uint32_t *index,
                              size_t capacity);
} lcomm_kernels_ef;

typedef struct lcomm_kernels_planes {
  /* Byte planes for the lossless stage. Each of n little-endian numbers of 2
   * or 4 bytes is rotated left by one bit, so that a float's exponent is the
   * top byte and its sign the lowest bit; plane[0] receives the top bytes,
   * plane[1] the next ones, and so on. join undoes split. Bytes of the numbers
   * may have any address. */
  void (*split2)(const uint8_t *source, uint8_t *const plane[2], size_t n);
  void (*split4)(const uint8_t *source, uint8_t *const plane[4], size_t n);
  void (*join2)(const uint8_t *const plane[2], uint8_t *destination, size_t n);
  void (*join4)(const uint8_t *const plane[4], uint8_t *destination, size_t n);
} lcomm_kernels_planes;

typedef struct lcomm_kernels {
  const char *name;
  lcomm_kernels_half half;           /* 16 bit */
  lcomm_kernels_f16_block f16_block; /* 16 bit with scales of blocks */
  lcomm_kernels_ef ef;               /* error feedback, top-k */
  lcomm_kernels_planes planes;       /* for the lossless stage */
  lcomm_kernels_lowrank lowrank;     /* matrices of low rank */

  /* Formats with one scale for each `block` elements; the last block may be
   * short. A decoded value is factor * (scale * code), two roundings; `add`
   * adds that with a third. */

  /* Symmetric int8 and int4, block 32 or 128, float32 scales. scale =
   * amax/127 (amax/7); codes -127..127 (-7..7), RNE(value * (127/amax)). Two
   * int4 codes share a byte, the one of the even element in the low half; the
   * high half of a last odd one is 0. -8 decodes like any other code. A block
   * whose amax is below 2^-119 gets scale 0 and codes 0. A block holding Inf
   * gets scale Inf, code +-127 (+-7) for each Inf and 0 for the others; one
   * holding NaN gets scale NaN and codes 0: no value of either decodes to a
   * finite one. */
  void (*f32_to_int8)(const float *source, size_t block, int8_t *code, float *scale, size_t n);
  void (*int8_to_f32)(const int8_t *code, const float *scale, size_t block, float factor,
                      float *destination, size_t n);
  void (*int8_add)(const int8_t *code, const float *scale, size_t block, float factor,
                   float *destination, size_t n);
  void (*f32_to_int4)(const float *source, size_t block, uint8_t *code, float *scale, size_t n);
  void (*int4_to_f32)(const uint8_t *code, const float *scale, size_t block, float factor,
                      float *destination, size_t n);
  void (*int4_add)(const uint8_t *code, const float *scale, size_t block, float factor,
                   float *destination, size_t n);

  /* fp8, block 32, 64 or 128, E8M0 scale bytes (2^(byte-127), 255 = NaN). The
   * scale is the smallest power of two that keeps the block's largest
   * magnitude representable (rounded up), 2^-127 at the least; a block of
   * zeros gets scale 1. A block holding NaN or Inf gets scale 255 and codes 0,
   * and decodes to NaN. */
  void (*f32_to_fp8[LCOMM_FP8_COUNT])(const float *source, size_t block, uint8_t *code,
                                      uint8_t *scale, size_t n);
  /* The same with stochastic rounding: up with the probability of the part
   * that is cut off, by lcomm_random(seed, first + i), see element.h. `first`
   * is a multiple of LCOMM_BLOCK. */
  void (*f32_to_fp8_stochastic[LCOMM_FP8_COUNT])(const float *source, size_t block, uint64_t seed,
                                                 uint64_t first, uint8_t *code, uint8_t *scale,
                                                 size_t n);
  void (*fp8_to_f32[LCOMM_FP8_COUNT])(const uint8_t *code, const uint8_t *scale, size_t block,
                                      float factor, float *destination, size_t n);
  void (*fp8_add[LCOMM_FP8_COUNT])(const uint8_t *code, const uint8_t *scale, size_t block,
                                   float factor, float *destination, size_t n);

  /* sign and int2, block 32, 64 or 128, scale bytes: 2^(byte-127), 0 for 0, NaN for 255. Codes of
   * 1 and 2 bits stand for 1, -1, 4, -4; of the 8 or 4 in a byte the first has the lowest bits, and
   * bits without an element are 0. Bit 0 is the sign of the value, bit 1 says that its magnitude is
   * above 2.5 * scale.
   * int2: the scale is the power of two with 4 * scale <= amax < 8 * scale.
   * sign: the scale is the power of two next to the root mean square of the block's values (the
   * last block may be short), with steps = RNE(magnitude * 2^(6-e)), e the exponent of amax: the
   * power of two of half the exponent, rounded down, of sum(steps^2) * (1 / (2304 * count)), times
   * 2^e, and 2^127 at the most.
   * A block whose amax is below 2^-119 gets scale 0 and signs as codes. A block holding NaN or Inf
   * gets scale 255 and codes 0, and decodes to NaN. */
  void (*f32_to_lowbit[LCOMM_LOWBIT_COUNT])(const float *source, size_t block, uint8_t *code,
                                            uint8_t *scale, size_t n);
  void (*lowbit_to_f32[LCOMM_LOWBIT_COUNT])(const uint8_t *code, const uint8_t *scale, size_t block,
                                            float factor, float *destination, size_t n);
  void (*lowbit_add[LCOMM_LOWBIT_COUNT])(const uint8_t *code, const uint8_t *scale, size_t block,
                                         float factor, float *destination, size_t n);

  /* destination = factor * source; may be equal */
  void (*f32_scale)(const float *source, float factor, float *destination, size_t n);
  /* destination += factor * source, two roundings */
  void (*f32_add)(const float *source, float factor, float *destination, size_t n);
  /* destination[i] = sources[0][i] + sources[1][i] + ... in that order.
   * count >= 1; a source may be equal to destination. */
  void (*f32_sum)(const float *const *sources, size_t count, float *destination, size_t n);
  /* Sums of many coded arrays in one pass: destination[i] = factor * (value of
   * sources[0] + value of sources[1] + ...), rounded after every addition, for
   * the elements first + i of the codes; count >= 1, `first` a multiple of
   * LCOMM_BLOCK. Plain values may be the destination. */
  void (*bf16_sum)(const lcomm_source *sources, size_t count, size_t first, float factor,
                   float *destination, size_t n);
  void (*int8_sum)(const lcomm_source *sources, size_t count, size_t block, size_t first,
                   float factor, float *destination, size_t n);
  /* How many values are NaN or Inf. */
  size_t (*f32_count_not_finite)(const float *source, size_t n);

} lcomm_kernels;

extern const lcomm_kernels lcomm_kernels_scalar;

/* All tables of this build from the plainest to the fastest, ended by NULL:
 * scalar, and on x86-64 avx2 and avx512. */
extern const lcomm_kernels *const lcomm_kernels_list[];

/* Can this processor and this system run the table? */
bool lcomm_kernels_runs(const lcomm_kernels *kernels);

/* The fastest table that runs here. Never NULL. */
const lcomm_kernels *lcomm_kernels_best(void);

/* The table of this name, NULL when there is none that runs here; *why (may be
 * NULL) then says which. */
const lcomm_kernels *lcomm_kernels_by_name(const char *name, const char **why);

/* Change to the standard floating-point environment, and back to what enter
 * returned. An application may have switched on flush-to-zero or another
 * rounding for its own threads. Costs a few nanoseconds. */
uint32_t lcomm_fp_enter(void);
void lcomm_fp_leave(uint32_t environment);

#endif

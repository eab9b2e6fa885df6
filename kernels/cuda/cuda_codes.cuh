/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_CODES_CUH
#define LCOMM_KERNELS_CUDA_CUDA_CODES_CUH

/* Encoders: the 16 values of a thread into codes, scales and what else a payload
 * holds. `kind` is a constant wherever these are used, and all lanes of a warp
 * take part.
 *
 * The lanes that share a block compute its largest magnitude together, so that each
 * lane ends with one of the four blocks that its pieces lie in: a quarter of the
 * lanes computes each scale, and the others get it by a shuffle.
 */

#include "kernels/cuda/cuda_lowbit.cuh"

/* The encoded values, for kernels that decode them right after. */
typedef struct lcomm_coded {
  lcomm_vec2 word[LCOMM_PIECES];
  float unit[LCOMM_PIECES];
} lcomm_coded;

LCOMM_DEVICE void lcomm_store_rest(uint8_t *piece, int bits, int size, lcomm_vec2 word) {
  LCOMM_UNROLL for (int b = 0; b < (LCOMM_PIECE * bits + 7) / 8; b++) {
    if (b < size) {
      piece[b] = (uint8_t)((b < 4 ? word.x : word.y) >> 8 * (b % 4));
    }
  }
}

/* The lower lane of two writes the byte of both. */
LCOMM_DEVICE void lcomm_store_signs(uint8_t *first, const lcomm_thread_values *at,
                                    const lcomm_vec2 word[LCOMM_PIECES]) {
  int step = LCOMM_STEP / 8;
  LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
    uint32_t byte = word[j].x | lcomm_shuffle_xor(word[j].x, 1) << LCOMM_PIECE;
    if ((lcomm_lane() & 1) == 0 && lcomm_piece_size(1, j, at) > 0) {
      first[j * step] = (uint8_t)byte;
    }
  }
}

LCOMM_DEVICE void lcomm_store_codes(int kind, void *code, const lcomm_thread_values *at,
                                    const lcomm_vec2 word[LCOMM_PIECES]) {
  int bits = lcomm_code_bits(kind), step = LCOMM_STEP * bits / 8;
  uint8_t *first = (uint8_t *)code + at->local * (uint64_t)bits / 8;
  if (kind == LCOMM_CUDA_SIGN) {
    lcomm_store_signs(first, at, word);
    return;
  }
  if (!at->whole) {
    LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
      lcomm_store_rest(first + j * step, bits, lcomm_piece_size(bits, j, at), word[j]);
    }
    return;
  }
  LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
    if (bits == 16) {
      lcomm_store2_once(first + j * step, word[j]);
    } else if (bits == 8) {
      lcomm_store_4_bytes_once(first + j * step, word[j].x);
    } else if (bits == 4) {
      lcomm_store_2_bytes_once(first + j * step, word[j].x);
    } else {
      first[j * step] = (uint8_t)word[j].x;
    }
  }
}

/* ------------------------------------------------------------------ 16 bits */

/* No product of a number with a power of two is NaN, and the code of a NaN is the
 * same with and without a multiplication before. */
LCOMM_DEVICE uint32_t lcomm_half_code(int kind, float up, float value) {
  if (kind == LCOMM_CUDA_BF16) {
    return lcomm_f32_to_bf16(value);
  }
  return lcomm_f32_to_f16(lcomm_is_nan(value) ? value : up * value);
}

LCOMM_DEVICE lcomm_vec2 lcomm_half_piece(int kind, float up, const float value[LCOMM_PIECE]) {
  float scaled[LCOMM_PIECE];
  int nan = 0;
  LCOMM_UNROLL for (int i = 0; i < LCOMM_PIECE; i++) {
    scaled[i] = kind == LCOMM_CUDA_F16 ? up * value[i] : value[i];
    nan |= lcomm_is_nan(value[i]);
  }
  lcomm_vec2 word = kind == LCOMM_CUDA_F16 ? lcomm_f16_codes(scaled) : lcomm_bf16_codes(scaled);
  if (!nan) {
    return word;
  }
  uint32_t code[LCOMM_PIECE];
  LCOMM_UNROLL for (int i = 0; i < LCOMM_PIECE; i++) {
    code[i] = lcomm_half_code(kind, up, value[i]);
  }
  lcomm_vec2 again = {code[0] | code[1] << 16, code[2] | code[3] << 16};
  return again;
}

/* ----------------------------------------------------------- E8M0 and codes */

LCOMM_DEVICE uint32_t lcomm_stochastic_piece(int kind, const float value[LCOMM_PIECE],
                                             lcomm_random_key key, uint32_t index) {
  uint32_t word = 0;
  LCOMM_UNROLL for (int i = 0; i < LCOMM_PIECE; i++) {
    uint32_t random = lcomm_random_next(key, index + (uint32_t)i);
    uint32_t code = kind == LCOMM_CUDA_E4M3 ? lcomm_f32_to_e4m3_stochastic(value[i], random)
                                            : lcomm_f32_to_e5m2_stochastic(value[i], random);
    word |= code << 8 * i;
  }
  return word;
}

/* The codes of values that fit the format under the scale. `index` is that of the
 * first, and has the upper half of that of the key. */
LCOMM_DEVICE lcomm_vec2 lcomm_scaled_piece(int kind, const lcomm_code_args *c, lcomm_random_key key,
                                           uint32_t index, const float value[LCOMM_PIECE]) {
  lcomm_vec2 word = {0, 0};
  if (kind == LCOMM_CUDA_F16_BLOCK) {
    return lcomm_f16_codes(value);
  }
  if (c->stochastic) {
    word.x = lcomm_stochastic_piece(kind, value, key, index);
  } else {
    word.x = kind == LCOMM_CUDA_E4M3 ? lcomm_e4m3_codes(value) : lcomm_e5m2_codes(value);
  }
  return word;
}

LCOMM_DEVICE void lcomm_encode_byte_scaled(int kind, const lcomm_code_args *c,
                                           const lcomm_thread_values *at, uint64_t n,
                                           const float value[LCOMM_VALUES], lcomm_coded *out) {
  uint32_t lanes = lcomm_lanes_of_block(c->shift);
  int32_t amax = lcomm_block_amax(value, lanes);
  uint32_t own = lcomm_e8m0_scale(amax, kind == LCOMM_CUDA_E4M3 ? LCOMM_E4M3_TOP : LCOMM_E5M2_TOP);
  uint64_t block;
  if (lcomm_writes_scale(lanes, c->shift, at, n, &block)) {
    ((uint8_t *)c->scale)[block] = (uint8_t)own;
  }
  lcomm_random_key key = {0, 0};
  if (c->stochastic) {
    uint64_t seed = c->more_seed ? c->seed + *c->more_seed : c->seed;
    key = lcomm_random_open(seed, at->local);
  }
  /* All are asked for before the lanes go different ways. */
  uint32_t scale[LCOMM_PIECES];
  LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
    scale[j] = lcomm_shuffle(own, lcomm_lane_of_piece(lanes, j));
  }
  LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
    lcomm_vec2 none = {0, 0};
    out->word[j] = none;
    out->unit[j] = lcomm_e8m0_to_f32((uint8_t)scale[j]);
    if (scale[j] == LCOMM_E8M0_NAN) {
      continue;
    }
    float inverse = lcomm_e8m0_inverse((uint8_t)scale[j]), scaled[LCOMM_PIECE];
    LCOMM_UNROLL for (int i = 0; i < LCOMM_PIECE; i++) {
      scaled[i] = value[4 * j + i] * inverse;
    }
    uint32_t index = (uint32_t)at->local + (uint32_t)(j * LCOMM_STEP);
    out->word[j] = lcomm_scaled_piece(kind, c, key, index, scaled);
  }
}

/* ----------------------------------------------------------------- integers */

/* The low four bits of four bytes, into two bytes. */
LCOMM_DEVICE uint32_t lcomm_int4_word(uint32_t bytes) {
  uint32_t half = bytes & 0x0f0f0f0fu;
  half |= half >> 4;
  return (half & 0xffu) | (half >> 8 & 0xff00u);
}

/* A block with Inf or NaN, see kernels.h. */
LCOMM_DEVICE uint32_t lcomm_integer_not_finite(const float value[LCOMM_PIECE], int32_t amax,
                                               uint32_t top) {
  uint32_t word = 0;
  LCOMM_UNROLL for (int i = 0; i < LCOMM_PIECE; i++) {
    int infinite = lcomm_f32_magnitude(value[i]) == (int32_t)LCOMM_F32_INF_BITS;
    uint32_t code = value[i] > 0.0f ? top : 0u - top;
    if (infinite && amax == (int32_t)LCOMM_F32_INF_BITS) {
      word |= (code & 0xffu) << 8 * i;
    }
  }
  return word;
}

LCOMM_DEVICE void lcomm_encode_float_scaled(int kind, const lcomm_code_args *c,
                                            const lcomm_thread_values *at, uint64_t n,
                                            const float value[LCOMM_VALUES], lcomm_coded *out) {
  uint32_t top = kind == LCOMM_CUDA_INT8 ? 127 : 7, lanes = lcomm_lanes_of_block(c->shift);
  lcomm_integer_scale own = lcomm_integer_scale_of(lcomm_block_amax(value, lanes), (float)top);
  uint64_t block;
  if (lcomm_writes_scale(lanes, c->shift, at, n, &block)) {
    ((uint32_t *)c->scale)[block] = own.scale;
  }
  uint32_t inverse[LCOMM_PIECES];
  LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
    uint32_t from = lcomm_lane_of_piece(lanes, j);
    inverse[j] = lcomm_shuffle(own.inverse, from);
    out->unit[j] = lcomm_f32_from_bits(lcomm_shuffle(own.scale, from));
  }
  LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
    float scaled[LCOMM_PIECE];
    LCOMM_UNROLL for (int i = 0; i < LCOMM_PIECE; i++) {
      scaled[i] = value[4 * j + i] * lcomm_f32_from_bits(inverse[j]);
    }
    uint32_t bytes = lcomm_int8_codes(scaled);
    if (inverse[j] >= LCOMM_F32_INF_BITS) {
      bytes = lcomm_integer_not_finite(value + 4 * j, (int32_t)inverse[j], top);
    }
    lcomm_vec2 word = {kind == LCOMM_CUDA_INT8 ? bytes : lcomm_int4_word(bytes), 0};
    out->word[j] = word;
  }
}

/* ----------------------------------------------------------- one and two bits */

LCOMM_DEVICE void lcomm_encode_lowbit(int kind, const lcomm_code_args *c,
                                      const lcomm_thread_values *at, uint64_t n,
                                      const float value[LCOMM_VALUES], lcomm_coded *out) {
  uint32_t lanes = lcomm_lanes_of_block(c->shift);
  uint32_t own = lcomm_lowbit_scale(kind, c->shift, at, n, value);
  uint64_t block;
  if (lcomm_writes_scale(lanes, c->shift, at, n, &block)) {
    ((uint8_t *)c->scale)[block] = (uint8_t)own;
  }
  LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
    uint32_t scale = lcomm_shuffle(own, lcomm_lane_of_piece(lanes, j));
    lcomm_vec2 word = {lcomm_lowbit_piece(kind, scale, value + 4 * j), 0};
    out->unit[j] = lcomm_lowbit_scale_to_f32((uint8_t)scale);
    out->word[j] = word;
  }
}

/* ---------------------------------------------------------------- a payload */

/* The bytes of a payload that belong to no element: the head of F16_FIXED, and the
 * zeros between scales and codes. */
LCOMM_DEVICE void lcomm_encode_rest(int kind, const lcomm_code_args *c,
                                    const lcomm_thread_values *at, uint64_t n) {
  if (at->local != 0 || !c->scale) { /* not the first thread of the view */
    return;
  }
  if (kind == LCOMM_CUDA_F16) {
    ((uint32_t *)c->scale)[0] = lcomm_f32_bits(c->down);
    ((uint32_t *)c->scale)[1] = 0;
  }
  if (!lcomm_has_float_scales(kind) && !lcomm_has_byte_scales(kind)) {
    return;
  }
  uint64_t blocks = (n + ((uint64_t)1 << c->shift) - 1) >> c->shift;
  LCOMM_ROLLED for (uint64_t b = blocks * (lcomm_has_float_scales(kind) ? 4 : 1); b % 8 != 0; b++) {
    ((uint8_t *)c->scale)[b] = 0;
  }
}

/* Values of elements past the end are 0. */
LCOMM_DEVICE void lcomm_encode_values(int kind, const lcomm_code_args *c,
                                      const lcomm_thread_values *at, uint64_t n,
                                      const float value[LCOMM_VALUES], lcomm_coded *out) {
  if (kind == LCOMM_CUDA_F32) {
    lcomm_store_values((float *)c->code, at->local, at, value);
    return;
  }
  if (lcomm_is_lowbit(kind)) {
    lcomm_encode_lowbit(kind, c, at, n, value, out);
  } else if (lcomm_has_byte_scales(kind)) {
    lcomm_encode_byte_scaled(kind, c, at, n, value, out);
  }
  if (lcomm_has_float_scales(kind)) {
    lcomm_encode_float_scaled(kind, c, at, n, value, out);
  }
  if (kind == LCOMM_CUDA_F16 || kind == LCOMM_CUDA_BF16) {
    LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
      out->word[j] = lcomm_half_piece(kind, c->up, value + 4 * j);
      out->unit[j] = c->down;
    }
  }
  lcomm_store_codes(kind, c->code, at, out->word);
  lcomm_encode_rest(kind, c, at, n);
}

#endif

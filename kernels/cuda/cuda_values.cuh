/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_VALUES_CUH
#define LCOMM_KERNELS_CUDA_CUDA_VALUES_CUH

/* Which elements a thread of a dense kernel works on, and how it loads them.
 *
 * A block of 256 threads has a tile of LCOMM_TILE elements, each of its warps 512
 * elements in a row, and each thread four pieces of 4 neighbours: piece j of lane
 * l begins at element 128 * j + 4 * l of the warp's. So the lanes of a warp touch
 * neighbouring addresses with every load and store, whatever the format is: 512
 * bytes of float32, 256 of 16-bit codes, 128 of 8-bit ones; four of each are on
 * their way at a time. Codes begin at a multiple of 8 and so does each warp's
 * part of them; float32 arrays may have any address, and those that are not
 * multiples of 16, as the last elements of all, go one by one.
 */

#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/cuda_hardware.cuh"

#include "kernels/cuda/cuda_arguments.cuh"
#include "kernels/lowbit.h"
#include "kernels/stripe.h"

enum {
  LCOMM_PIECES = 4,
  LCOMM_PIECE = 4,                        /* elements of a piece */
  LCOMM_VALUES = 16,                      /* elements of a thread */
  LCOMM_STEP = LCOMM_WARP * LCOMM_PIECE,  /* from one piece to the next */
  LCOMM_SPAN = LCOMM_STEP * LCOMM_PIECES, /* elements of a warp */
  LCOMM_DENSE_THREADS = LCOMM_TILE / LCOMM_VALUES
};

/* Where the elements of a thread are. */
typedef struct lcomm_thread_values {
  uint64_t local;  /* the thread's first element in the view, and */
  uint64_t global; /* in its array */
  int32_t left;    /* elements of the warp from there on; below 1: none */
  int whole;       /* the warp has all its elements */
} lcomm_thread_values;

/* Of the threads of a block that has tile `tile` of a view. */
LCOMM_DEVICE lcomm_thread_values lcomm_thread_values_at(uint64_t tile, uint64_t n, uint32_t parts,
                                                        uint32_t part) {
  uint32_t warp = lcomm_warp() * LCOMM_SPAN, lane = lcomm_lane() * LCOMM_PIECE;
  uint64_t first = tile * LCOMM_TILE + warp;
  uint64_t rest = n > first ? n - first : 0;
  lcomm_thread_values at;
  at.local = first + lane;
  at.global = (tile * parts + part) * LCOMM_TILE + warp + lane;
  at.whole = rest >= LCOMM_SPAN;
  at.left = (int32_t)(at.whole ? (uint64_t)LCOMM_SPAN : rest) - (int32_t)lane;
  return at;
}

LCOMM_DEVICE lcomm_thread_values lcomm_thread_values_of(uint64_t n, uint32_t parts, uint32_t part) {
  return lcomm_thread_values_at(lcomm_block(), n, parts, part);
}

/* Of element i of a thread: how far it is from the first. */
LCOMM_DEVICE int lcomm_distance(int i) {
  return i / LCOMM_PIECE * LCOMM_STEP + i % LCOMM_PIECE;
}

LCOMM_DEVICE int lcomm_by_vectors(const void *array, const lcomm_thread_values *at) {
  return at->whole && (uintptr_t)array % 16 == 0;
}

/* ------------------------------------------------------------------- values */

/* Elements past the end are 0. */
LCOMM_DEVICE void lcomm_load_values(const float *array, uint64_t index,
                                    const lcomm_thread_values *at, float value[LCOMM_VALUES]) {
  const float *first = array + index;
  if (lcomm_by_vectors(array, at)) {
    LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
      lcomm_vec4 v = lcomm_load4_once(first + j * LCOMM_STEP);
      value[4 * j] = lcomm_f32_from_bits(v.x);
      value[4 * j + 1] = lcomm_f32_from_bits(v.y);
      value[4 * j + 2] = lcomm_f32_from_bits(v.z);
      value[4 * j + 3] = lcomm_f32_from_bits(v.w);
    }
    return;
  }
  LCOMM_UNROLL for (int i = 0; i < LCOMM_VALUES; i++) {
    value[i] = lcomm_distance(i) < at->left ? first[lcomm_distance(i)] : 0.0f;
  }
}

LCOMM_DEVICE void lcomm_store_values(float *array, uint64_t index, const lcomm_thread_values *at,
                                     const float value[LCOMM_VALUES]) {
  float *first = array + index;
  if (lcomm_by_vectors(array, at)) {
    LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
      lcomm_vec4 v = {lcomm_f32_bits(value[4 * j]), lcomm_f32_bits(value[4 * j + 1]),
                      lcomm_f32_bits(value[4 * j + 2]), lcomm_f32_bits(value[4 * j + 3])};
      lcomm_store4_once(first + j * LCOMM_STEP, v);
    }
    return;
  }
  LCOMM_UNROLL for (int i = 0; i < LCOMM_VALUES; i++) {
    if (lcomm_distance(i) < at->left) {
      first[lcomm_distance(i)] = value[i];
    }
  }
}

/* -------------------------------------------------------------------- codes */

/* `kind` is a constant wherever these are used. */

LCOMM_DEVICE int lcomm_code_bits(int kind) {
  if (kind == LCOMM_CUDA_INT4) {
    return 4;
  }
  if (kind == LCOMM_CUDA_SIGN || kind == LCOMM_CUDA_INT2) {
    return kind == LCOMM_CUDA_SIGN ? 1 : 2;
  }
  return kind == LCOMM_CUDA_E4M3 || kind == LCOMM_CUDA_E5M2 || kind == LCOMM_CUDA_INT8 ? 8 : 16;
}

LCOMM_DEVICE int lcomm_has_float_scales(int kind) {
  return kind == LCOMM_CUDA_INT8 || kind == LCOMM_CUDA_INT4;
}

LCOMM_DEVICE int lcomm_is_lowbit(int kind) {
  return kind == LCOMM_CUDA_SIGN || kind == LCOMM_CUDA_INT2;
}

LCOMM_DEVICE int lcomm_has_byte_scales(int kind) {
  return kind == LCOMM_CUDA_E4M3 || kind == LCOMM_CUDA_E5M2 || kind == LCOMM_CUDA_F16_BLOCK ||
         lcomm_is_lowbit(kind);
}

/* Bytes of a piece's codes that are there. */
LCOMM_DEVICE int lcomm_piece_size(int bits, int piece, const lcomm_thread_values *at) {
  int count = at->left - piece * LCOMM_STEP;
  count = count < 0 ? 0 : count > LCOMM_PIECE ? LCOMM_PIECE : count;
  return (count * bits + 7) / 8;
}

/* Those of a piece that is not whole, byte by byte. */
LCOMM_DEVICE lcomm_vec2 lcomm_load_rest(const uint8_t *piece, int bits, int size) {
  lcomm_vec2 word = {0, 0};
  LCOMM_UNROLL for (int b = 0; b < (LCOMM_PIECE * bits + 7) / 8; b++) {
    uint32_t byte = b < size ? piece[b] : 0u;
    word.x |= b < 4 ? byte << 8 * b : 0u;
    word.y |= b < 4 ? 0u : byte << 8 * (b % 4);
  }
  return word;
}

/* Two lanes have the codes of a byte of SIGN: their bits of it. */
LCOMM_DEVICE void lcomm_pick_signs(lcomm_vec2 word[LCOMM_PIECES]) {
  uint32_t shift = (lcomm_lane() & 1) * LCOMM_PIECE;
  LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
    word[j].x = word[j].x >> shift & 0xfu;
  }
}

/* The codes of each piece, lowest first; those past the end are 0. */
LCOMM_DEVICE void lcomm_load_codes(int kind, const void *code, const lcomm_thread_values *at,
                                   lcomm_vec2 word[LCOMM_PIECES]) {
  int bits = lcomm_code_bits(kind), step = LCOMM_STEP * bits / 8;
  const uint8_t *first = (const uint8_t *)code + at->local * (uint64_t)bits / 8;
  if (!at->whole) {
    LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
      word[j] = lcomm_load_rest(first + j * step, bits, lcomm_piece_size(bits, j, at));
    }
    if (kind == LCOMM_CUDA_SIGN) {
      lcomm_pick_signs(word);
    }
    return;
  }
  LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
    word[j].y = 0;
    if (bits == 16) {
      word[j] = lcomm_load2_once(first + j * step);
    } else if (bits == 8) {
      word[j].x = lcomm_load_4_bytes_once(first + j * step);
    } else if (bits == 4) {
      word[j].x = lcomm_load_2_bytes_once(first + j * step);
    } else {
      word[j].x = lcomm_load_1_byte_once(first + j * step);
    }
  }
  if (kind == LCOMM_CUDA_SIGN) {
    lcomm_pick_signs(word);
  }
}

/* What values are multiplied with, as it is stored: lane l has the scale of block l
 * of the warp's elements, or 0; for F16, all have its one factor. `shift` is the
 * logarithm of the block. */
LCOMM_DEVICE uint32_t lcomm_load_scale(int kind, const void *scale, uint32_t shift,
                                       const lcomm_thread_values *at) {
  uint32_t lane = lcomm_lane();
  if (kind == LCOMM_CUDA_F16) {
    return scale ? *(const uint32_t *)scale : lcomm_f32_bits(1.0f);
  }
  if (!lcomm_has_float_scales(kind) && !lcomm_has_byte_scales(kind)) {
    return 0;
  }
  /* Of a warp that has all its elements, the number of blocks is known. */
  uint32_t end = LCOMM_SPAN;
  if (!at->whole) {
    end = (uint32_t)(at->left + (int32_t)(lane * LCOMM_PIECE));
  }
  uint64_t block = ((at->local - lane * LCOMM_PIECE) >> shift) + lane;
  if (lane << shift >= end) {
    return 0;
  }
  return lcomm_has_float_scales(kind) ? ((const uint32_t *)scale)[block]
                                      : ((const uint8_t *)scale)[block];
}

/* The same as a number. */
LCOMM_DEVICE float lcomm_scale_value(int kind, uint32_t raw) {
  if (lcomm_is_lowbit(kind)) {
    return lcomm_lowbit_scale_to_f32((uint8_t)raw);
  }
  return lcomm_has_byte_scales(kind) ? lcomm_e8m0_to_f32((uint8_t)raw) : lcomm_f32_from_bits(raw);
}

/* That of one piece, from the lane that has it; all lanes take part. */
LCOMM_DEVICE float lcomm_piece_scale(int kind, float scale, uint32_t shift, int piece) {
  if (!lcomm_has_float_scales(kind) && !lcomm_has_byte_scales(kind)) {
    return scale;
  }
  uint32_t first = (uint32_t)(piece * LCOMM_STEP) + lcomm_lane() * LCOMM_PIECE;
  return lcomm_f32_from_bits(lcomm_shuffle(lcomm_f32_bits(scale), first >> shift));
}

LCOMM_DEVICE void lcomm_lowbit_values(int bits, uint32_t codes, float value[LCOMM_PIECE]) {
  LCOMM_UNROLL for (int i = 0; i < LCOMM_PIECE; i++) {
    value[i] = lcomm_lowbit_to_f32(codes >> bits * i & (uint32_t)(bits == 1 ? 1 : 3));
  }
}

/* Values of a piece; for NaN, some NaN. bf16 does not use `unit`. */
LCOMM_DEVICE void lcomm_piece_values(int kind, lcomm_vec2 word, float unit,
                                     float value[LCOMM_PIECE]) {
  if (kind == LCOMM_CUDA_BF16) {
    value[0] = lcomm_f32_from_bits(word.x << 16);
    value[1] = lcomm_f32_from_bits(word.x & 0xffff0000u);
    value[2] = lcomm_f32_from_bits(word.y << 16);
    value[3] = lcomm_f32_from_bits(word.y & 0xffff0000u);
    return;
  }
  if (kind == LCOMM_CUDA_E4M3) {
    lcomm_e4m3_values(word.x, value);
  } else if (kind == LCOMM_CUDA_E5M2) {
    lcomm_e5m2_values(word.x, value);
  } else if (kind == LCOMM_CUDA_INT8) {
    lcomm_int8_values(word.x, value);
  } else if (kind == LCOMM_CUDA_INT4) {
    lcomm_int4_values(word.x, value);
  } else if (lcomm_is_lowbit(kind)) {
    lcomm_lowbit_values(lcomm_code_bits(kind), word.x, value);
  } else {
    lcomm_f16_values(word, value);
  }
  LCOMM_UNROLL for (int i = 0; i < LCOMM_PIECE; i++) {
    value[i] = unit * value[i];
  }
}

#endif

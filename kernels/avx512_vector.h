/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_AVX512_VECTOR_H
#define LCOMM_KERNELS_AVX512_VECTOR_H

/* What the AVX-512 kernels share. For files compiled with AVX-512 only.
 *
 * Kernels exist along several paths. CACHED stores as usual. STREAMED is for
 * arrays that no cache holds: it stores past the caches, whole aligned cache
 * lines, which saves reading the lines first (+30..100 %). ADDED adds to what
 * is in the array. The functions here are inlined always, so that the path, the
 * block and the format are constants inside their loops.
 */

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/kernels.h"

#define LCOMM_VECTOR static inline __attribute__((always_inline))

typedef enum lcomm_path { LCOMM_CACHED, LCOMM_STREAMED, LCOMM_ADDED } lcomm_path;

enum {
  LCOMM_LANES = 16,       /* float32 values in a vector */
  LCOMM_LINE = 64,        /* bytes of a vector and of a cache line */
  LCOMM_AHEAD = 2048,     /* bytes that reading is asked for in advance */
  LCOMM_STAGE = 4096,     /* elements that pass through a buffer on the stack at a time */
  LCOMM_TILE_BLOCKS = 16, /* most blocks of a tile, see lcomm_tile_size */
  LCOMM_TILE_MOST = 1024, /* most elements of a tile */
};

LCOMM_VECTOR bool lcomm_is_line(const void *address) {
  return (uintptr_t)address % LCOMM_LINE == 0;
}

/* Elements before the first cache line that starts in the array; at most n. */
LCOMM_VECTOR size_t lcomm_line_head(const void *array, size_t element_size, size_t n) {
  size_t head = (-(uintptr_t)array % LCOMM_LINE) / element_size;
  return head < n ? head : n;
}

LCOMM_VECTOR __mmask16 lcomm_lanes(size_t left) {
  return (__mmask16)(left >= LCOMM_LANES ? 0xffff : (1u << left) - 1);
}

LCOMM_VECTOR void lcomm_store_bits(lcomm_path path, void *destination, __m512i value) {
  if (path == LCOMM_STREAMED) {
    _mm512_stream_si512((__m512i *)destination, value);
  } else {
    _mm512_storeu_si512(destination, value);
  }
}

LCOMM_VECTOR void lcomm_put(lcomm_path path, float *destination, __m512 value) {
  if (path == LCOMM_STREAMED) {
    _mm512_stream_ps(destination, value);
  } else if (path == LCOMM_ADDED) {
    _mm512_storeu_ps(destination, _mm512_add_ps(_mm512_loadu_ps(destination), value));
  } else {
    _mm512_storeu_ps(destination, value);
  }
}

LCOMM_VECTOR void lcomm_put_lanes(lcomm_path path, float *destination, __mmask16 lanes,
                                  __m512 value) {
  if (path == LCOMM_ADDED) {
    value = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, destination), value);
  }
  _mm512_mask_storeu_ps(destination, lanes, value);
}

/* The line may lie past the end of the array, where a prefetch does nothing. */
LCOMM_VECTOR void lcomm_prefetch(const void *address, uintptr_t ahead) {
  _mm_prefetch((const char *)((uintptr_t)address + ahead), _MM_HINT_T0);
}

/* For codes that are decoded: not when adding, where the loads of the destination
 * keep memory busy and more requests only cost (-10 %). */
LCOMM_VECTOR void lcomm_prefetch_codes(lcomm_path path, const void *code) {
  if (path != LCOMM_ADDED) {
    lcomm_prefetch(code, LCOMM_AHEAD);
  }
}

LCOMM_VECTOR __m512i lcomm_magnitudes(__m512i bits) {
  return _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
}

/* Sign, NaN and infinity classes of VFPCLASSPS */
enum { LCOMM_INFINITE = 0x08 | 0x10, LCOMM_NOT_FINITE = LCOMM_INFINITE | 0x01 | 0x80 };

LCOMM_VECTOR __m512 lcomm_finite_or_zero_vector(__m512 value) {
  __mmask16 bad = _mm512_fpclass_ps_mask(value, LCOMM_NOT_FINITE);
  return _mm512_mask_mov_ps(value, bad, _mm512_setzero_ps());
}

/* lcomm_error_kept of 16 values */
LCOMM_VECTOR __m512 lcomm_error_kept_vector(__m512 value, __m512 decoded) {
  __mmask16 lost = _mm512_fpclass_ps_mask(decoded, LCOMM_NOT_FINITE);
  __mmask16 bad = _mm512_fpclass_ps_mask(value, LCOMM_NOT_FINITE) |
                  _mm512_fpclass_ps_mask(decoded, LCOMM_INFINITE);
  __m512 kept = _mm512_mask_mov_ps(_mm512_sub_ps(value, decoded), lost, value);
  return _mm512_mask_mov_ps(kept, bad, _mm512_setzero_ps());
}

/* Elements of a tile, the blocks whose scales are computed together: as many as
 * the first cache holds until they are encoded, and 16 blocks at the most. */
LCOMM_VECTOR size_t lcomm_tile_size(size_t block) {
  return block == LCOMM_BLOCK ? LCOMM_TILE_MOST : LCOMM_TILE_BLOCKS * block;
}

/* How lanes are put together. */
typedef enum lcomm_lanes_to { LCOMM_LARGEST, LCOMM_SUMMED } lcomm_lanes_to;

LCOMM_VECTOR __m512i lcomm_two_lanes(lcomm_lanes_to result, __m512i a, __m512i b) {
  return result == LCOMM_LARGEST ? _mm512_max_epi32(a, b) : _mm512_add_epi32(a, b);
}

/* Lane b of the result is the largest lane of partial[b], or their sum: a transposition that puts
 * two together at each of its steps. `blocks` is 8 or 16; of 8 the upper lanes are a copy. */
LCOMM_VECTOR __m512i lcomm_of_each(lcomm_lanes_to result, const __m512i partial[LCOMM_TILE_BLOCKS],
                                   size_t blocks) {
  __m512i pair[8], quad[4], half[2];
  for (size_t i = 0; i < blocks / 2; i++) {
    pair[i] = lcomm_two_lanes(result, _mm512_unpacklo_epi32(partial[2 * i], partial[2 * i + 1]),
                              _mm512_unpackhi_epi32(partial[2 * i], partial[2 * i + 1]));
  }
  for (size_t i = 0; i < blocks / 4; i++) {
    quad[i] = lcomm_two_lanes(result, _mm512_unpacklo_epi64(pair[2 * i], pair[2 * i + 1]),
                              _mm512_unpackhi_epi64(pair[2 * i], pair[2 * i + 1]));
  }
  for (size_t i = 0; i < blocks / 8; i++) {
    half[i] = lcomm_two_lanes(result, _mm512_shuffle_i32x4(quad[2 * i], quad[2 * i + 1], 0x88),
                              _mm512_shuffle_i32x4(quad[2 * i], quad[2 * i + 1], 0xdd));
  }
  size_t last = blocks / 8 - 1;
  return lcomm_two_lanes(result, _mm512_shuffle_i32x4(half[0], half[last], 0x88),
                         _mm512_shuffle_i32x4(half[0], half[last], 0xdd));
}

/* Largest magnitude bits of the blocks of a tile; when there are 8, twice. */
LCOMM_VECTOR __m512i lcomm_block_maxima(const float *source, size_t block) {
  __m512i partial[LCOMM_TILE_BLOCKS];
  const size_t blocks = lcomm_tile_size(block) / block;
  for (size_t b = 0; b < blocks; b++) {
    partial[b] = lcomm_magnitudes(_mm512_loadu_si512(source + b * block));
    for (size_t i = LCOMM_LANES; i < block; i += LCOMM_LANES) {
      __m512i more = lcomm_magnitudes(_mm512_loadu_si512(source + b * block + i));
      partial[b] = _mm512_max_epi32(partial[b], more);
    }
  }
  return lcomm_of_each(LCOMM_LARGEST, partial, blocks);
}

/* padded = n elements of source and zeros up to `size` */
LCOMM_VECTOR void lcomm_pad(float *padded, const float *source, size_t n, size_t size) {
  memcpy(padded, source, n * sizeof *padded);
  memset(padded + n, 0, (size - n) * sizeof *padded);
}

/* The dwords of four vectors, as signed numbers cut to int8 range; lane by
 * lane, see lcomm_in_order. */
LCOMM_VECTOR __m512i lcomm_pack_bytes(const __m512i value[4]) {
  return _mm512_packs_epi16(_mm512_packs_epi32(value[0], value[1]),
                            _mm512_packs_epi32(value[2], value[3]));
}

/* 128-bit lane l of `bytes` holds dword l of vector 0, of vector 1, ...; put
 * them in the order of the array. */
LCOMM_VECTOR __m512i lcomm_in_order(__m512i bytes) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, bytes);
}

/* Copy `size` bytes past the caches. */
LCOMM_VECTOR void lcomm_stream_copy(void *destination, const void *source, size_t size) {
  char *to = destination;
  const char *from = source;
  size_t head = lcomm_line_head(to, 1, size);
  memcpy(to, from, head);
  size_t i = head;
  for (; i + LCOMM_LINE <= size; i += LCOMM_LINE) {
    _mm512_stream_si512((__m512i *)(void *)(to + i), _mm512_loadu_si512(from + i));
  }
  memcpy(to + i, from + i, size - i);
}

#endif

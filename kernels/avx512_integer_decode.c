/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX-512 kernels that decode int8 and int4. */

#include "kernels/avx512.h"
#include "kernels/avx512_vector.h"

typedef enum integer { INT8, INT4 } integer;

/* Bytes of `count` codes; an even count. */
LCOMM_VECTOR size_t code_bytes(integer kind, size_t count) {
  return kind == INT8 ? count : count / 2;
}

/* ---------------------------------------------------------- 128 values of a payload */

LCOMM_VECTOR void int8_unit(lcomm_path path, const uint8_t *code, const float *scale, size_t block,
                            __m512 factor, float *destination) {
  /* Read before anything is stored, which might be a scale for all we know. */
  __m512 scales[LCOMM_BLOCK / 32];
  for (size_t b = 0; b < LCOMM_BLOCK / block; b++) {
    scales[b] = _mm512_set1_ps(scale[b]);
  }
  for (size_t i = 0; i < LCOMM_BLOCK; i += LCOMM_LANES) {
    __m512i codes = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(code + i)));
    __m512 value = _mm512_mul_ps(scales[i / block], _mm512_cvtepi32_ps(codes));
    lcomm_put(path, destination + i, _mm512_mul_ps(factor, value));
  }
}

/* int4: the 16 values a block can have are computed once, and looked up. */

LCOMM_VECTOR __m512 int4_values(float scale, __m512 factor) {
  const __m512 values = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
  return _mm512_mul_ps(factor, _mm512_mul_ps(_mm512_set1_ps(scale), values));
}

/* Bits 0..3 of lane i are nibble i of the 16 that start with dword `first` of
 * `bytes`; the others are not 0, which the look-up does not mind. */
LCOMM_VECTOR __m512i int4_nibbles(__m512i bytes, int first) {
  const __m512i shift = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
  const __m512i half = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  __m512i dword = _mm512_add_epi32(half, _mm512_set1_epi32(first));
  return _mm512_srlv_epi32(_mm512_permutexvar_epi32(dword, bytes), shift);
}

LCOMM_VECTOR void int4_unit(lcomm_path path, const uint8_t *code, const float *scale, size_t block,
                            __m512 factor, float *destination) {
  /* Read before anything is stored, which might be a scale for all we know. */
  __m512i bytes = _mm512_loadu_si512(code);
  __m512 values[LCOMM_BLOCK / 32];
  for (size_t b = 0; b < LCOMM_BLOCK / block; b++) {
    values[b] = int4_values(scale[b], factor);
  }
  for (size_t i = 0; i < LCOMM_BLOCK; i += LCOMM_LANES) {
    __m512i nibbles = int4_nibbles(bytes, (int)i / 8);
    lcomm_put(path, destination + i, _mm512_permutexvar_ps(nibbles, values[i / block]));
  }
}

LCOMM_VECTOR void unit(integer kind, lcomm_path path, const uint8_t *code, const float *scale,
                       size_t block, __m512 factor, float *destination) {
  lcomm_prefetch_codes(path, code);
  if (kind == INT4) {
    int4_unit(path, code, scale, block, factor, destination);
    return;
  }
  lcomm_prefetch_codes(path, code + 64);
  int8_unit(path, code, scale, block, factor, destination);
}

/* ------------------------------------------------------------------- whole payloads */

/* Fewer values than a unit has. */
LCOMM_VECTOR void rest(integer kind, lcomm_path path, const uint8_t *code, const float *scale,
                       size_t block, float factor, float *destination, size_t n) {
  const lcomm_kernels *scalar = &lcomm_kernels_scalar;
  if (kind == INT8) {
    (path == LCOMM_ADDED ? scalar->int8_add : scalar->int8_to_f32)((const int8_t *)code, scale,
                                                                   block, factor, destination, n);
  } else {
    (path == LCOMM_ADDED ? scalar->int4_add : scalar->int4_to_f32)(code, scale, block, factor,
                                                                   destination, n);
  }
}

LCOMM_VECTOR void blocks(integer kind, lcomm_path path, const uint8_t *code, const float *scale,
                         size_t block, float factor, float *destination, size_t n) {
  __m512 factors = _mm512_set1_ps(factor);
  size_t whole = n - n % LCOMM_BLOCK;
  for (size_t i = 0; i < whole; i += LCOMM_BLOCK) {
    unit(kind, path, code + code_bytes(kind, i), scale + i / block, block, factors,
         destination + i);
  }
  if (whole < n) {
    rest(kind, path, code + code_bytes(kind, whole), scale + whole / block, block, factor,
         destination + whole, n - whole);
  }
}

LCOMM_VECTOR void all(integer kind, lcomm_path path, const uint8_t *code, const float *scale,
                      size_t block, float factor, float *destination, size_t n) {
  if (block == 32) {
    blocks(kind, path, code, scale, 32, factor, destination, n);
  } else {
    blocks(kind, path, code, scale, LCOMM_BLOCK, factor, destination, n);
  }
}

LCOMM_VECTOR void decode(integer kind, const uint8_t *code, const float *scale, size_t block,
                         float factor, float *destination, size_t n) {
  if (n < LCOMM_STREAM_COUNT) {
    all(kind, LCOMM_CACHED, code, scale, block, factor, destination, n);
    return;
  }
  if (lcomm_is_line(destination)) {
    all(kind, LCOMM_STREAMED, code, scale, block, factor, destination, n);
    _mm_sfence();
    return;
  }
  float stage[LCOMM_STAGE];
  for (size_t i = 0; i < n; i += LCOMM_STAGE) {
    size_t count = n - i < LCOMM_STAGE ? n - i : LCOMM_STAGE;
    all(kind, LCOMM_CACHED, code + code_bytes(kind, i), scale + i / block, block, factor, stage,
        count);
    lcomm_stream_copy(destination + i, stage, count * sizeof *stage);
  }
  _mm_sfence();
}

void lcomm_avx512_int8_to_f32(const int8_t *code, const float *scale, size_t block, float factor,
                              float *destination, size_t n) {
  decode(INT8, (const uint8_t *)code, scale, block, factor, destination, n);
}

void lcomm_avx512_int8_add(const int8_t *code, const float *scale, size_t block, float factor,
                           float *destination, size_t n) {
  all(INT8, LCOMM_ADDED, (const uint8_t *)code, scale, block, factor, destination, n);
}

void lcomm_avx512_int4_to_f32(const uint8_t *code, const float *scale, size_t block, float factor,
                              float *destination, size_t n) {
  decode(INT4, code, scale, block, factor, destination, n);
}

void lcomm_avx512_int4_add(const uint8_t *code, const float *scale, size_t block, float factor,
                           float *destination, size_t n) {
  all(INT4, LCOMM_ADDED, code, scale, block, factor, destination, n);
}

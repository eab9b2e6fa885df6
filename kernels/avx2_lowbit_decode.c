/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX2 kernels that decode sign and int2. The numbers of four codes at once come from a table, of
 * 256 bytes for sign and 4 KiB for int2, and are multiplied by the scale and the factor, as
 * the scalar kernels do. (Vectors of eight are slower where a processor cuts them into halves:
 * lanes that blend the values of a block by their bits take twice as long for int2, lanes that
 * shift codes of their own still longer.)
 */

#include "kernels/avx2.h"
#include "kernels/avx2_block.h"
#include "kernels/lowbit.h"

enum { STEP = LCOMM_AVX2_STEP, TILE = LCOMM_AVX2_TILE };

/* Bytes of `count` codes. */
LCOMM_AVX2_INLINE size_t code_size(lcomm_lowbit format, size_t count) {
  return format == LCOMM_SIGN ? (count + 7) / 8 : (count + 3) / 4;
}

LCOMM_AVX2_INLINE float value_of(lcomm_lowbit format, float unit, uint32_t code, float factor) {
  return factor * (unit * lcomm_lowbit_to_f32(format == LCOMM_SIGN ? code & 1 : code & 3));
}

/* Of the code in the low bits of `c`: lcomm_lowbit_to_f32() as a constant. */
#define SIGN_OF(c) ((c)&1 ? -1.0f : 1.0f)
#define INT2_OF(c) ((c)&2 ? 4 * SIGN_OF(c) : SIGN_OF(c))

/* Entries of a table: the numbers of four codes, and as many times 4, 16 and 64 entries. */
#define FOUR_SIGNS(c)                                                                              \
  { SIGN_OF(c), SIGN_OF((c) >> 1), SIGN_OF((c) >> 2), SIGN_OF((c) >> 3) }
#define FOUR_INT2(c)                                                                               \
  { INT2_OF(c), INT2_OF((c) >> 2), INT2_OF((c) >> 4), INT2_OF((c) >> 6) }
#define TABLE_4(entry, c) entry(c), entry((c) + 1), entry((c) + 2), entry((c) + 3)
#define TABLE_16(entry, c)                                                                         \
  TABLE_4(entry, c), TABLE_4(entry, (c) + 4), TABLE_4(entry, (c) + 8), TABLE_4(entry, (c) + 12)
#define TABLE_64(entry, c)                                                                         \
  TABLE_16(entry, c), TABLE_16(entry, (c) + 16), TABLE_16(entry, (c) + 32),                        \
      TABLE_16(entry, (c) + 48)

static const float four_signs[16][4] = {TABLE_16(FOUR_SIGNS, 0)};
static const float four_int2[256][4] = {TABLE_64(FOUR_INT2, 0), TABLE_64(FOUR_INT2, 64),
                                        TABLE_64(FOUR_INT2, 128), TABLE_64(FOUR_INT2, 192)};

LCOMM_AVX2_INLINE void put_four(lcomm_avx2_way way, float *destination, __m128 value) {
  if (way == LCOMM_AVX2_STREAM) {
    _mm_stream_ps(destination, value);
  } else if (way == LCOMM_AVX2_ADD) {
    _mm_storeu_ps(destination, _mm_add_ps(_mm_loadu_ps(destination), value));
  } else {
    _mm_storeu_ps(destination, value);
  }
}

/* A step of elements of one block. */
LCOMM_AVX2_INLINE void decode_step(lcomm_lowbit format, lcomm_avx2_way way, const uint8_t *code,
                                   __m128 unit, __m128 factor, float *destination) {
  uint64_t codes = 0;
  memcpy(&codes, code, code_size(format, STEP));
  for (size_t i = 0; i < STEP; i += 4) {
    const float *four = format == LCOMM_SIGN ? four_signs[codes & 15] : four_int2[codes & 255];
    __m128 number = _mm_loadu_ps(four);
    put_four(way, destination + i, _mm_mul_ps(factor, _mm_mul_ps(unit, number)));
    codes >>= format == LCOMM_SIGN ? 4 : 8;
  }
}

/* Whole blocks. */
LCOMM_AVX2_INLINE void decode_blocks(lcomm_lowbit format, lcomm_avx2_way way, const uint8_t *code,
                                     const uint8_t *scale, size_t block, float factor,
                                     float *destination, size_t n) {
  __m128 factors = _mm_set1_ps(factor);
  for (size_t first = 0; first < n; first += block, scale++) {
    __m128 unit = _mm_set1_ps(lcomm_lowbit_scale_to_f32(*scale));
    for (size_t i = first; i < first + block; i += STEP, code += code_size(format, STEP)) {
      if (way == LCOMM_AVX2_ADD) {
        lcomm_avx2_prefetch(destination + i, STEP * sizeof *destination);
      }
      decode_step(format, way, code, unit, factors, destination + i);
    }
  }
}

/* Part of the last block. */
LCOMM_AVX2_INLINE void decode_few(lcomm_lowbit format, lcomm_avx2_way way, const uint8_t *code,
                                  const uint8_t *scale, size_t block, float factor,
                                  float *destination, size_t first, size_t end) {
  const size_t width = format == LCOMM_SIGN ? 1 : 2, in_byte = 8 / width;
  if (first == end) {
    return;
  }
  float unit = lcomm_lowbit_scale_to_f32(scale[first / block]);
  for (size_t i = first; i < end; i++) {
    uint32_t bits = (uint32_t)code[i / in_byte] >> width * (i % in_byte);
    float value = value_of(format, unit, bits, factor);
    destination[i] = way == LCOMM_AVX2_ADD ? destination[i] + value : value;
  }
}

typedef lcomm_lowbit code_format;
typedef uint8_t code_scale;

#include "kernels/avx2_decode_body.h"

void lcomm_avx2_sign_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                            float *destination, size_t n) {
  decode(LCOMM_SIGN, code, scale, block, factor, destination, n);
}

void lcomm_avx2_int2_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                            float *destination, size_t n) {
  decode(LCOMM_INT2, code, scale, block, factor, destination, n);
}

void lcomm_avx2_sign_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                         float *destination, size_t n) {
  add(LCOMM_SIGN, code, scale, block, factor, destination, n);
}

void lcomm_avx2_int2_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                         float *destination, size_t n) {
  add(LCOMM_INT2, code, scale, block, factor, destination, n);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_AVX512_SCALE_H
#define LCOMM_KERNELS_AVX512_SCALE_H

/* The fp8 formats and their E8M0 scales, for the AVX-512 kernels. */

#include "kernels/avx512_vector.h"
#include "kernels/element.h"

enum {
  LCOMM_E4M3_MANTISSA = 3,
  LCOMM_E4M3_LOWEST = 121, /* the float32 exponent field of the smallest normal number */
  LCOMM_E5M2_MANTISSA = 2,
  LCOMM_E5M2_LOWEST = 113,
};

/* lcomm_e8m0_scale of 16 maxima */
LCOMM_VECTOR __m512i lcomm_scale_bytes(lcomm_fp8 format, __m512i amax) {
  __m512i mantissa = _mm512_and_si512(amax, _mm512_set1_epi32(0x7fffff));
  __mmask16 above = _mm512_cmpgt_epi32_mask(mantissa, _mm512_set1_epi32(0x600000));
  __mmask16 infinite = _mm512_cmpge_epi32_mask(amax, _mm512_set1_epi32(LCOMM_F32_INF_BITS));
  __mmask16 zero = _mm512_testn_epi32_mask(amax, amax);
  __m512i top = _mm512_set1_epi32(format == LCOMM_E4M3 ? LCOMM_E4M3_TOP : LCOMM_E5M2_TOP);
  __m512i byte = _mm512_sub_epi32(_mm512_srli_epi32(amax, 23), top);
  byte = _mm512_mask_add_epi32(byte, above, byte, _mm512_set1_epi32(1));
  byte = _mm512_max_epi32(byte, _mm512_setzero_si512());
  byte = _mm512_mask_mov_epi32(byte, zero, _mm512_set1_epi32(LCOMM_E8M0_ONE));
  return _mm512_mask_mov_epi32(byte, infinite, _mm512_set1_epi32(LCOMM_E8M0_NAN));
}

/* The scale bytes of a tile, from the dwords of a vector */
LCOMM_VECTOR void lcomm_store_scale_bytes(uint8_t *scale, size_t block, __m512i bytes) {
  __m128i packed = _mm512_cvtepi32_epi8(bytes);
  if (lcomm_tile_size(block) / block == LCOMM_TILE_BLOCKS) {
    _mm_storeu_si128((__m128i *)scale, packed);
  } else {
    _mm_storel_epi64((__m128i *)scale, packed);
  }
}

/* lcomm_e8m0_inverse of 16 bytes */
LCOMM_VECTOR void lcomm_store_inverses(float inverses[LCOMM_TILE_BLOCKS], __m512i bytes) {
  __m512i exponents = _mm512_sub_epi32(_mm512_set1_epi32(254), bytes);
  _mm512_storeu_si512(inverses, _mm512_slli_epi32(exponents, 23));
}

LCOMM_VECTOR int lcomm_fp8_mantissa(lcomm_fp8 format) {
  return format == LCOMM_E4M3 ? LCOMM_E4M3_MANTISSA : LCOMM_E5M2_MANTISSA;
}

/* The magic number that rounds is so many binades above the value. */
LCOMM_VECTOR int lcomm_fp8_cut(lcomm_fp8 format) {
  return 23 - lcomm_fp8_mantissa(format);
}

#endif

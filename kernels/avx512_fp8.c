/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX-512 kernels that encode fp8 with the byte shuffles of AVX512BW. */

#include "kernels/avx512_fp8.h"
#include "kernels/avx512.h"

/* Lane by lane: bytes of `other` replace those of `value` that are in the mask. */
LCOMM_VECTOR __m512i merged(__m512i value, __mmask64 mask, __m512i other, int32_t bytes) {
  const __m512i dword = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
  __m512i order = _mm512_add_epi32(dword, _mm512_set1_epi32(bytes));
  return _mm512_mask_shuffle_epi8(value, mask, other, order);
}

LCOMM_VECTOR __m512i lcomm_fp8_pack(lcomm_fp8 format, const __m512i sum[LCOMM_FP8_VECTORS],
                                    const __m512i adjust[2]) {
  const __mmask64 even = 0x5555555555555555u, low = 0x3333333333333333u;
  __m512i code[LCOMM_FP8_VECTORS];
  for (int i = 0; i < LCOMM_FP8_VECTORS; i++) {
    code[i] = lcomm_fp8_place(format, sum[i]);
  }
  /* From byte 0: code of b, code of a, sign of b, sign of a; then of d and c */
  __m512i ab = merged(code[0], even, code[1], 0x03030101);
  __m512i cd = merged(code[2], even, code[3], 0x03030101);
  __m512i magnitudes = merged(ab, ~low, cd, 0x01000100);
  __m512i signs = merged(cd, low, ab, 0x03020302);
  magnitudes =
      _mm512_sub_epi8(magnitudes, _mm512_mask_blend_epi16(0xaaaaaaaa, adjust[0], adjust[1]));
  __m512i bytes = lcomm_fp8_with_signs(magnitudes, signs);
  /* By vector: lane l holds dword l of a, of b, of c, of d. */
  const __m512i by_vector = _mm512_set4_epi32(0x0e0a0602, 0x0f0b0703, 0x0c080400, 0x0d090501);
  return lcomm_in_order(_mm512_shuffle_epi8(bytes, by_vector));
}

void lcomm_avx512_f32_to_e4m3(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                              size_t n) {
  lcomm_fp8_encode_any(LCOMM_E4M3, source, block, code, scale, n);
}

void lcomm_avx512_f32_to_e5m2(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                              size_t n) {
  lcomm_fp8_encode_any(LCOMM_E5M2, source, block, code, scale, n);
}

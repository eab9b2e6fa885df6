/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX-512 kernels that gain from VBMI, which picks bytes from two vectors in one
 * instruction: those that encode fp8. */

#include "kernels/avx512.h"
#include "kernels/avx512_fp8.h"

LCOMM_VECTOR __m512i lcomm_fp8_pack(lcomm_fp8 format, const __m512i sum[LCOMM_FP8_VECTORS],
                                    const __m512i adjust[2]) {
  /* Bytes 1 of two vectors, then bytes 3 */
  const __m512i pick = _mm512_set_epi64(0x7f7b77736f6b6763, 0x5f5b57534f4b4743, 0x3f3b37332f2b2723,
                                        0x1f1b17130f0b0703, 0x7d7975716d696561, 0x5d5955514d494541,
                                        0x3d3935312d292521, 0x1d1915110d090501);
  __m512i code[LCOMM_FP8_VECTORS];
  for (int i = 0; i < LCOMM_FP8_VECTORS; i++) {
    code[i] = lcomm_fp8_place(format, sum[i]);
  }
  __m512i first = _mm512_permutex2var_epi8(code[0], pick, code[1]);
  __m512i second = _mm512_permutex2var_epi8(code[2], pick, code[3]);
  __m512i magnitudes = _mm512_shuffle_i64x2(first, second, 0x44);
  magnitudes = _mm512_sub_epi8(magnitudes, _mm512_mask_blend_epi32(0xff00, adjust[0], adjust[1]));
  __m512i signs = _mm512_shuffle_i64x2(first, second, 0xee);
  return lcomm_fp8_with_signs(magnitudes, signs);
}

static void f32_to_e4m3(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                        size_t n) {
  lcomm_fp8_encode_any(LCOMM_E4M3, source, block, code, scale, n);
}

static void f32_to_e5m2(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                        size_t n) {
  lcomm_fp8_encode_any(LCOMM_E5M2, source, block, code, scale, n);
}

const lcomm_kernels lcomm_kernels_avx512_vbmi =
    LCOMM_KERNEL_TABLE(avx512, f32_to_e4m3, f32_to_e5m2);

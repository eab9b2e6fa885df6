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

const lcomm_kernels lcomm_kernels_avx512_vbmi = {
    .name = "avx512",
    .half.f32_to_f16 = lcomm_avx512_f32_to_f16,
    .half.f32_to_bf16 = lcomm_avx512_f32_to_bf16,
    .half.f16_to_f32 = lcomm_avx512_f16_to_f32,
    .half.bf16_to_f32 = lcomm_avx512_bf16_to_f32,
    .half.f16_add = lcomm_avx512_f16_add,
    .half.bf16_add = lcomm_avx512_bf16_add,
    .f32_to_int8 = lcomm_avx512_f32_to_int8,
    .int8_to_f32 = lcomm_avx512_int8_to_f32,
    .int8_add = lcomm_avx512_int8_add,
    .f32_to_int4 = lcomm_avx512_f32_to_int4,
    .int4_to_f32 = lcomm_avx512_int4_to_f32,
    .int4_add = lcomm_avx512_int4_add,
    .f32_to_fp8 = {[LCOMM_E4M3] = f32_to_e4m3, [LCOMM_E5M2] = f32_to_e5m2},
    .f32_to_fp8_stochastic = {[LCOMM_E4M3] = lcomm_avx512_f32_to_e4m3_stochastic,
                              [LCOMM_E5M2] = lcomm_avx512_f32_to_e5m2_stochastic},
    .fp8_to_f32 =
        {[LCOMM_E4M3] = lcomm_avx512_e4m3_to_f32, [LCOMM_E5M2] = lcomm_avx512_e5m2_to_f32},
    .fp8_add = {[LCOMM_E4M3] = lcomm_avx512_e4m3_add, [LCOMM_E5M2] = lcomm_avx512_e5m2_add},
    .f16_block.f32_to_f16_block = lcomm_avx512_f32_to_f16_block,
    .f16_block.f16_block_to_f32 = lcomm_avx512_f16_block_to_f32,
    .f16_block.f16_block_add = lcomm_avx512_f16_block_add,
    .f32_scale = lcomm_avx512_f32_scale,
    .f32_add = lcomm_avx512_f32_add,
    .f32_sum = lcomm_avx512_f32_sum,
    .bf16_sum = lcomm_avx512_bf16_sum,
    .int8_sum = lcomm_avx512_int8_sum,
    .f32_count_not_finite = lcomm_avx512_f32_count_not_finite,
    .ef.f32_keep_error = lcomm_avx512_f32_keep_error,
    .ef.f32_add_error = lcomm_avx512_f32_add_error,
    .ef.f32_momentum = lcomm_avx512_f32_momentum,
    .ef.accumulate_select = lcomm_avx512_accumulate_select,
    .planes.split2 = lcomm_avx512_split2,
    .planes.split4 = lcomm_avx512_split4,
    .planes.join2 = lcomm_avx512_join2,
    .planes.join4 = lcomm_avx512_join4,
};

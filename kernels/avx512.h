/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_AVX512_H
#define LCOMM_KERNELS_AVX512_H

/* The kernel tables for x86-64 with AVX-512; kernels.h says what the functions
 * do. lcomm_kernels_avx512 needs AVX512F, BW, DQ and VL (and AVX2, F16C, BMI2
 * and LZCNT, which every such processor has); lcomm_kernels_avx512_vbmi needs
 * AVX512_VBMI as well, and differs only where that is faster. */

#include "kernels/kernels.h"

extern const lcomm_kernels lcomm_kernels_avx512;
extern const lcomm_kernels lcomm_kernels_avx512_vbmi;

/* 16-bit formats */

void lcomm_avx512_f32_to_f16(const float *source, float factor, uint16_t *code, size_t n);
void lcomm_avx512_f32_to_bf16(const float *source, uint16_t *code, size_t n);
void lcomm_avx512_f16_to_f32(const uint16_t *code, float factor, float *destination, size_t n);
void lcomm_avx512_bf16_to_f32(const uint16_t *code, float factor, float *destination, size_t n);
void lcomm_avx512_f16_add(const uint16_t *code, float factor, float *destination, size_t n);
void lcomm_avx512_bf16_add(const uint16_t *code, float factor, float *destination, size_t n);

/* int8 and int4 */

void lcomm_avx512_f32_to_int8(const float *source, size_t block, int8_t *code, float *scale,
                              size_t n);
void lcomm_avx512_int8_to_f32(const int8_t *code, const float *scale, size_t block, float factor,
                              float *destination, size_t n);
void lcomm_avx512_int8_add(const int8_t *code, const float *scale, size_t block, float factor,
                           float *destination, size_t n);
void lcomm_avx512_f32_to_int4(const float *source, size_t block, uint8_t *code, float *scale,
                              size_t n);
void lcomm_avx512_int4_to_f32(const uint8_t *code, const float *scale, size_t block, float factor,
                              float *destination, size_t n);
void lcomm_avx512_int4_add(const uint8_t *code, const float *scale, size_t block, float factor,
                           float *destination, size_t n);

/* fp8 */

void lcomm_avx512_f32_to_e4m3(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                              size_t n);
void lcomm_avx512_f32_to_e5m2(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                              size_t n);
void lcomm_avx512_f32_to_e4m3_stochastic(const float *source, size_t block, uint64_t seed,
                                         uint64_t first, uint8_t *code, uint8_t *scale, size_t n);
void lcomm_avx512_f32_to_e5m2_stochastic(const float *source, size_t block, uint64_t seed,
                                         uint64_t first, uint8_t *code, uint8_t *scale, size_t n);
void lcomm_avx512_e4m3_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                              float *destination, size_t n);
void lcomm_avx512_e5m2_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                              float *destination, size_t n);
void lcomm_avx512_e4m3_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                           float *destination, size_t n);
void lcomm_avx512_e5m2_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                           float *destination, size_t n);

/* f16 in blocks */

void lcomm_avx512_f32_to_f16_block(const float *source, uint16_t *code, uint8_t *scale, size_t n);
void lcomm_avx512_f16_block_to_f32(const uint16_t *code, const uint8_t *scale, float factor,
                                   float *destination, size_t n);
void lcomm_avx512_f16_block_add(const uint16_t *code, const uint8_t *scale, float factor,
                                float *destination, size_t n);

/* float32 arithmetic */

void lcomm_avx512_f32_scale(const float *source, float factor, float *destination, size_t n);
void lcomm_avx512_f32_add(const float *source, float factor, float *destination, size_t n);
void lcomm_avx512_f32_sum(const float *const *sources, size_t count, float *destination, size_t n);
void lcomm_avx512_bf16_sum(const lcomm_source *sources, size_t count, size_t first, float factor,
                           float *destination, size_t n);
void lcomm_avx512_int8_sum(const lcomm_source *sources, size_t count, size_t block, size_t first,
                           float factor, float *destination, size_t n);
size_t lcomm_avx512_f32_count_not_finite(const float *source, size_t n);
void lcomm_avx512_f32_keep_error(const float *decoded, float *residual, size_t n);
void lcomm_avx512_f32_add_error(const float *source, const float *decoded, float weight,
                                float *residual, size_t n);
void lcomm_avx512_f32_momentum(float factor, float *momentum, float *gradient, size_t n);

/* Selection and byte planes */

size_t lcomm_avx512_accumulate_select(const float *source, float *residual, size_t n,
                                      uint32_t threshold_bits, uint32_t first_index,
                                      uint32_t *index, size_t capacity);
void lcomm_avx512_split2(const uint8_t *source, uint8_t *const plane[2], size_t n);
void lcomm_avx512_split4(const uint8_t *source, uint8_t *const plane[4], size_t n);
void lcomm_avx512_join2(const uint8_t *const plane[2], uint8_t *destination, size_t n);
void lcomm_avx512_join4(const uint8_t *const plane[4], uint8_t *destination, size_t n);

#endif

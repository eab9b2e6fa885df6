/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_SCALAR_H
#define LCOMM_KERNELS_SCALAR_H

/* The scalar kernels by name, so that another table can take those that are
 * not worth a version of its own. */

#include "kernels/kernels.h"

void lcomm_scalar_f32_to_f16(const float *source, float factor, uint16_t *code, size_t n);
void lcomm_scalar_f32_to_bf16(const float *source, uint16_t *code, size_t n);
void lcomm_scalar_f16_to_f32(const uint16_t *code, float factor, float *destination, size_t n);
void lcomm_scalar_bf16_to_f32(const uint16_t *code, float factor, float *destination, size_t n);
void lcomm_scalar_f16_add(const uint16_t *code, float factor, float *destination, size_t n);
void lcomm_scalar_bf16_add(const uint16_t *code, float factor, float *destination, size_t n);

void lcomm_scalar_f32_to_int8(const float *source, size_t block, int8_t *code, float *scale,
                              size_t n);
void lcomm_scalar_int8_to_f32(const int8_t *code, const float *scale, size_t block, float factor,
                              float *destination, size_t n);
void lcomm_scalar_int8_add(const int8_t *code, const float *scale, size_t block, float factor,
                           float *destination, size_t n);
void lcomm_scalar_f32_to_int4(const float *source, size_t block, uint8_t *code, float *scale,
                              size_t n);
void lcomm_scalar_int4_to_f32(const uint8_t *code, const float *scale, size_t block, float factor,
                              float *destination, size_t n);
void lcomm_scalar_int4_add(const uint8_t *code, const float *scale, size_t block, float factor,
                           float *destination, size_t n);

void lcomm_scalar_f32_to_e4m3(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                              size_t n);
void lcomm_scalar_f32_to_e5m2(const float *source, size_t block, uint8_t *code, uint8_t *scale,
                              size_t n);
void lcomm_scalar_f32_to_e4m3_stochastic(const float *source, size_t block, uint64_t seed,
                                         uint64_t first, uint8_t *code, uint8_t *scale, size_t n);
void lcomm_scalar_f32_to_e5m2_stochastic(const float *source, size_t block, uint64_t seed,
                                         uint64_t first, uint8_t *code, uint8_t *scale, size_t n);
void lcomm_scalar_e4m3_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                              float *destination, size_t n);
void lcomm_scalar_e5m2_to_f32(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                              float *destination, size_t n);
void lcomm_scalar_e4m3_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                           float *destination, size_t n);
void lcomm_scalar_e5m2_add(const uint8_t *code, const uint8_t *scale, size_t block, float factor,
                           float *destination, size_t n);

void lcomm_scalar_f32_to_f16_block(const float *source, uint16_t *code, uint8_t *scale, size_t n);
void lcomm_scalar_f16_block_to_f32(const uint16_t *code, const uint8_t *scale, float factor,
                                   float *destination, size_t n);
void lcomm_scalar_f16_block_add(const uint16_t *code, const uint8_t *scale, float factor,
                                float *destination, size_t n);

void lcomm_scalar_f32_scale(const float *source, float factor, float *destination, size_t n);
void lcomm_scalar_f32_add(const float *source, float factor, float *destination, size_t n);
void lcomm_scalar_f32_sum(const float *const *sources, size_t count, float *destination, size_t n);
void lcomm_scalar_bf16_sum(const lcomm_source *sources, size_t count, size_t first, float factor,
                           float *destination, size_t n);
void lcomm_scalar_int8_sum(const lcomm_source *sources, size_t count, size_t block, size_t first,
                           float factor, float *destination, size_t n);
size_t lcomm_scalar_f32_count_not_finite(const float *source, size_t n);
void lcomm_scalar_f32_keep_error(const float *decoded, float *residual, size_t n);
void lcomm_scalar_f32_add_error(const float *source, const float *decoded, float weight,
                                float *residual, size_t n);
void lcomm_scalar_f32_momentum(float factor, float *momentum, float *gradient, size_t n);

size_t lcomm_scalar_accumulate_select(const float *source, float *residual, size_t n,
                                      uint32_t threshold_bits, uint32_t first_index,
                                      uint32_t *index, size_t capacity);

void lcomm_scalar_split2(const uint8_t *source, uint8_t *const plane[2], size_t n);
void lcomm_scalar_split4(const uint8_t *source, uint8_t *const plane[4], size_t n);
void lcomm_scalar_join2(const uint8_t *const plane[2], uint8_t *destination, size_t n);
void lcomm_scalar_join4(const uint8_t *const plane[4], uint8_t *destination, size_t n);

#endif

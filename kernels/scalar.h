/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_SCALAR_H
#define LCOMM_KERNELS_SCALAR_H

/* The functions behind lcomm_kernels_scalar; kernels.h says what they do.
 * Other tables may borrow those that a compiler already vectorises well. */

#include "kernels/kernels.h"

void lcomm_scalar_f32_to_f16(const float *source, uint16_t *code, size_t n);
void lcomm_scalar_f32_to_bf16(const float *source, uint16_t *code, size_t n);
void lcomm_scalar_f16_to_f32(const uint16_t *code, float factor, float *destination, size_t n);
void lcomm_scalar_bf16_to_f32(const uint16_t *code, float factor, float *destination, size_t n);
void lcomm_scalar_f16_add(const uint16_t *code, float factor, float *destination, size_t n);
void lcomm_scalar_bf16_add(const uint16_t *code, float factor, float *destination, size_t n);

void lcomm_scalar_f32_to_int8(const float *source, int8_t *code, float *scale, size_t n);
void lcomm_scalar_int8_to_f32(const int8_t *code, const float *scale, float factor,
                              float *destination, size_t n);
void lcomm_scalar_int8_add(const int8_t *code, const float *scale, float factor, float *destination,
                           size_t n);

void lcomm_scalar_f32_to_e4m3(const float *source, uint8_t *code, uint8_t *scale, size_t n);
void lcomm_scalar_f32_to_e5m2(const float *source, uint8_t *code, uint8_t *scale, size_t n);
void lcomm_scalar_e4m3_to_f32(const uint8_t *code, const uint8_t *scale, float factor,
                              float *destination, size_t n);
void lcomm_scalar_e5m2_to_f32(const uint8_t *code, const uint8_t *scale, float factor,
                              float *destination, size_t n);
void lcomm_scalar_e4m3_add(const uint8_t *code, const uint8_t *scale, float factor,
                           float *destination, size_t n);
void lcomm_scalar_e5m2_add(const uint8_t *code, const uint8_t *scale, float factor,
                           float *destination, size_t n);

void lcomm_scalar_f32_scale(const float *source, float factor, float *destination, size_t n);
void lcomm_scalar_f32_add(const float *source, float factor, float *destination, size_t n);
void lcomm_scalar_f32_sum(const float *const *sources, size_t count, float *destination, size_t n);

size_t lcomm_scalar_accumulate_select(const float *source, float *residual, size_t n,
                                      uint32_t threshold_bits, uint32_t first_index,
                                      uint32_t *index, size_t capacity);

#endif

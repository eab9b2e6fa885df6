/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_ISA_TABLE_H
#define LCOMM_KERNELS_ISA_TABLE_H

/* The functions and the table of an instruction set, once for all: the function behind a member of
 * lcomm_kernels is called lcomm_ISA_MEMBER; kernels.h says what it does. */

#include "kernels/kernels.h"

#define LCOMM_DECLARE_KERNELS(isa)                                                                 \
  void lcomm_##isa##_f32_to_f16(const float *source, float factor, uint16_t *code, size_t n);      \
  void lcomm_##isa##_f32_to_bf16(const float *source, uint16_t *code, size_t n);                   \
  void lcomm_##isa##_f16_to_f32(const uint16_t *code, float factor, float *destination, size_t n); \
  void lcomm_##isa##_bf16_to_f32(const uint16_t *code, float factor, float *destination,           \
                                 size_t n);                                                        \
  void lcomm_##isa##_f16_add(const uint16_t *code, float factor, float *destination, size_t n);    \
  void lcomm_##isa##_bf16_add(const uint16_t *code, float factor, float *destination, size_t n);   \
  void lcomm_##isa##_f32_to_int8(const float *source, size_t block, int8_t *code, float *scale,    \
                                 size_t n);                                                        \
  void lcomm_##isa##_int8_to_f32(const int8_t *code, const float *scale, size_t block,             \
                                 float factor, float *destination, size_t n);                      \
  void lcomm_##isa##_int8_add(const int8_t *code, const float *scale, size_t block, float factor,  \
                              float *destination, size_t n);                                       \
  void lcomm_##isa##_f32_to_int4(const float *source, size_t block, uint8_t *code, float *scale,   \
                                 size_t n);                                                        \
  void lcomm_##isa##_int4_to_f32(const uint8_t *code, const float *scale, size_t block,            \
                                 float factor, float *destination, size_t n);                      \
  void lcomm_##isa##_int4_add(const uint8_t *code, const float *scale, size_t block, float factor, \
                              float *destination, size_t n);                                       \
  void lcomm_##isa##_f32_to_e4m3(const float *source, size_t block, uint8_t *code, uint8_t *scale, \
                                 size_t n);                                                        \
  void lcomm_##isa##_f32_to_e5m2(const float *source, size_t block, uint8_t *code, uint8_t *scale, \
                                 size_t n);                                                        \
  void lcomm_##isa##_f32_to_e4m3_stochastic(const float *source, size_t block, uint64_t seed,      \
                                            uint64_t first, uint8_t *code, uint8_t *scale,         \
                                            size_t n);                                             \
  void lcomm_##isa##_f32_to_e5m2_stochastic(const float *source, size_t block, uint64_t seed,      \
                                            uint64_t first, uint8_t *code, uint8_t *scale,         \
                                            size_t n);                                             \
  void lcomm_##isa##_e4m3_to_f32(const uint8_t *code, const uint8_t *scale, size_t block,          \
                                 float factor, float *destination, size_t n);                      \
  void lcomm_##isa##_e5m2_to_f32(const uint8_t *code, const uint8_t *scale, size_t block,          \
                                 float factor, float *destination, size_t n);                      \
  void lcomm_##isa##_e4m3_add(const uint8_t *code, const uint8_t *scale, size_t block,             \
                              float factor, float *destination, size_t n);                         \
  void lcomm_##isa##_e5m2_add(const uint8_t *code, const uint8_t *scale, size_t block,             \
                              float factor, float *destination, size_t n);                         \
  void lcomm_##isa##_f32_to_sign(const float *source, size_t block, uint8_t *code, uint8_t *scale, \
                                 size_t n);                                                        \
  void lcomm_##isa##_sign_to_f32(const uint8_t *code, const uint8_t *scale, size_t block,          \
                                 float factor, float *destination, size_t n);                      \
  void lcomm_##isa##_sign_add(const uint8_t *code, const uint8_t *scale, size_t block,             \
                              float factor, float *destination, size_t n);                         \
  void lcomm_##isa##_f32_to_int2(const float *source, size_t block, uint8_t *code, uint8_t *scale, \
                                 size_t n);                                                        \
  void lcomm_##isa##_int2_to_f32(const uint8_t *code, const uint8_t *scale, size_t block,          \
                                 float factor, float *destination, size_t n);                      \
  void lcomm_##isa##_int2_add(const uint8_t *code, const uint8_t *scale, size_t block,             \
                              float factor, float *destination, size_t n);                         \
  void lcomm_##isa##_f32_to_f16_block(const float *source, uint16_t *code, uint8_t *scale,         \
                                      size_t n);                                                   \
  void lcomm_##isa##_f16_block_to_f32(const uint16_t *code, const uint8_t *scale, float factor,    \
                                      float *destination, size_t n);                               \
  void lcomm_##isa##_f16_block_add(const uint16_t *code, const uint8_t *scale, float factor,       \
                                   float *destination, size_t n);                                  \
  void lcomm_##isa##_f32_scale(const float *source, float factor, float *destination, size_t n);   \
  void lcomm_##isa##_f32_add(const float *source, float factor, float *destination, size_t n);     \
  void lcomm_##isa##_f32_sum(const float *const *sources, size_t count, float *destination,        \
                             size_t n);                                                            \
  void lcomm_##isa##_bf16_sum(const lcomm_source *sources, size_t count, size_t first,             \
                              float factor, float *destination, size_t n);                         \
  void lcomm_##isa##_int8_sum(const lcomm_source *sources, size_t count, size_t block,             \
                              size_t first, float factor, float *destination, size_t n);           \
  size_t lcomm_##isa##_f32_count_not_finite(const float *source, size_t n);                        \
  void lcomm_##isa##_f32_keep_error(const float *decoded, float *residual, size_t n);              \
  void lcomm_##isa##_f32_add_error(const float *source, const float *decoded, float weight,        \
                                   float *residual, size_t n);                                     \
  void lcomm_##isa##_f32_momentum(float factor, const float *before, float *momentum,              \
                                  float *gradient, size_t n);                                      \
  size_t lcomm_##isa##_accumulate_select(const float *source, const float *before,                 \
                                         float *residual, size_t n, uint32_t threshold_bits,       \
                                         uint32_t first_index, uint32_t *index, size_t capacity);  \
  void lcomm_##isa##_lowrank_project(float *p, float *m, const float *gradient, const float *q,    \
                                     size_t rows, size_t columns, size_t rank);                    \
  void lcomm_##isa##_lowrank_project_back(float *q, const float *m, const float *p, size_t rows,   \
                                          size_t columns, size_t rank);                            \
  void lcomm_##isa##_lowrank_expand(float *result, float *m, const float *p, const float *q,       \
                                    size_t rows, size_t columns, size_t rank, float share);        \
  void lcomm_##isa##_split2(const uint8_t *source, uint8_t *const plane[2], size_t n);             \
  void lcomm_##isa##_split4(const uint8_t *source, uint8_t *const plane[4], size_t n);             \
  void lcomm_##isa##_join2(const uint8_t *const plane[2], uint8_t *destination, size_t n);         \
  void lcomm_##isa##_join4(const uint8_t *const plane[4], uint8_t *destination, size_t n)

/* An initialiser of lcomm_kernels. `encode_e4m3` and `encode_e5m2`: the encoders of fp8, which a
 * table may have for itself. */
#define LCOMM_KERNEL_TABLE(isa, encode_e4m3, encode_e5m2)                                          \
  {                                                                                                \
    .name = #isa, .half.f32_to_f16 = lcomm_##isa##_f32_to_f16,                                     \
    .half.f32_to_bf16 = lcomm_##isa##_f32_to_bf16, .half.f16_to_f32 = lcomm_##isa##_f16_to_f32,    \
    .half.bf16_to_f32 = lcomm_##isa##_bf16_to_f32, .half.f16_add = lcomm_##isa##_f16_add,          \
    .half.bf16_add = lcomm_##isa##_bf16_add, .f32_to_int8 = lcomm_##isa##_f32_to_int8,             \
    .int8_to_f32 = lcomm_##isa##_int8_to_f32, .int8_add = lcomm_##isa##_int8_add,                  \
    .f32_to_int4 = lcomm_##isa##_f32_to_int4, .int4_to_f32 = lcomm_##isa##_int4_to_f32,            \
    .int4_add = lcomm_##isa##_int4_add,                                                            \
    .f32_to_fp8 = {[LCOMM_E4M3] = encode_e4m3, [LCOMM_E5M2] = encode_e5m2},                        \
    .f32_to_fp8_stochastic = {[LCOMM_E4M3] = lcomm_##isa##_f32_to_e4m3_stochastic,                 \
                              [LCOMM_E5M2] = lcomm_##isa##_f32_to_e5m2_stochastic},                \
    .fp8_to_f32 =                                                                                  \
        {[LCOMM_E4M3] = lcomm_##isa##_e4m3_to_f32, [LCOMM_E5M2] = lcomm_##isa##_e5m2_to_f32},      \
    .fp8_add = {[LCOMM_E4M3] = lcomm_##isa##_e4m3_add, [LCOMM_E5M2] = lcomm_##isa##_e5m2_add},     \
    .f32_to_lowbit =                                                                               \
        {[LCOMM_SIGN] = lcomm_##isa##_f32_to_sign, [LCOMM_INT2] = lcomm_##isa##_f32_to_int2},      \
    .lowbit_to_f32 =                                                                               \
        {[LCOMM_SIGN] = lcomm_##isa##_sign_to_f32, [LCOMM_INT2] = lcomm_##isa##_int2_to_f32},      \
    .lowbit_add = {[LCOMM_SIGN] = lcomm_##isa##_sign_add, [LCOMM_INT2] = lcomm_##isa##_int2_add},  \
    .f16_block.f32_to_f16_block = lcomm_##isa##_f32_to_f16_block,                                  \
    .f16_block.f16_block_to_f32 = lcomm_##isa##_f16_block_to_f32,                                  \
    .f16_block.f16_block_add = lcomm_##isa##_f16_block_add, .f32_scale = lcomm_##isa##_f32_scale,  \
    .f32_add = lcomm_##isa##_f32_add, .f32_sum = lcomm_##isa##_f32_sum,                            \
    .bf16_sum = lcomm_##isa##_bf16_sum, .int8_sum = lcomm_##isa##_int8_sum,                        \
    .f32_count_not_finite = lcomm_##isa##_f32_count_not_finite,                                    \
    .ef.f32_keep_error = lcomm_##isa##_f32_keep_error,                                             \
    .ef.f32_add_error = lcomm_##isa##_f32_add_error,                                               \
    .ef.f32_momentum = lcomm_##isa##_f32_momentum,                                                 \
    .ef.accumulate_select = lcomm_##isa##_accumulate_select,                                       \
    .lowrank.project = lcomm_##isa##_lowrank_project,                                              \
    .lowrank.project_back = lcomm_##isa##_lowrank_project_back,                                    \
    .lowrank.expand = lcomm_##isa##_lowrank_expand, .planes.split2 = lcomm_##isa##_split2,         \
    .planes.split4 = lcomm_##isa##_split4, .planes.join2 = lcomm_##isa##_join2,                    \
    .planes.join4 = lcomm_##isa##_join4                                                            \
  }

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "kernels/scalar.h"

const lcomm_kernels lcomm_kernels_scalar = {
    .name = "scalar",
    .half.f32_to_f16 = lcomm_scalar_f32_to_f16,
    .half.f32_to_bf16 = lcomm_scalar_f32_to_bf16,
    .half.f16_to_f32 = lcomm_scalar_f16_to_f32,
    .half.bf16_to_f32 = lcomm_scalar_bf16_to_f32,
    .half.f16_add = lcomm_scalar_f16_add,
    .half.bf16_add = lcomm_scalar_bf16_add,
    .f32_to_int8 = lcomm_scalar_f32_to_int8,
    .int8_to_f32 = lcomm_scalar_int8_to_f32,
    .int8_add = lcomm_scalar_int8_add,
    .f32_to_int4 = lcomm_scalar_f32_to_int4,
    .int4_to_f32 = lcomm_scalar_int4_to_f32,
    .int4_add = lcomm_scalar_int4_add,
    .f32_to_fp8 =
        {[LCOMM_E4M3] = lcomm_scalar_f32_to_e4m3, [LCOMM_E5M2] = lcomm_scalar_f32_to_e5m2},
    .f32_to_fp8_stochastic = {[LCOMM_E4M3] = lcomm_scalar_f32_to_e4m3_stochastic,
                              [LCOMM_E5M2] = lcomm_scalar_f32_to_e5m2_stochastic},
    .fp8_to_f32 =
        {[LCOMM_E4M3] = lcomm_scalar_e4m3_to_f32, [LCOMM_E5M2] = lcomm_scalar_e5m2_to_f32},
    .fp8_add = {[LCOMM_E4M3] = lcomm_scalar_e4m3_add, [LCOMM_E5M2] = lcomm_scalar_e5m2_add},
    .f16_block.f32_to_f16_block = lcomm_scalar_f32_to_f16_block,
    .f16_block.f16_block_to_f32 = lcomm_scalar_f16_block_to_f32,
    .f16_block.f16_block_add = lcomm_scalar_f16_block_add,
    .f32_scale = lcomm_scalar_f32_scale,
    .f32_add = lcomm_scalar_f32_add,
    .f32_sum = lcomm_scalar_f32_sum,
    .bf16_sum = lcomm_scalar_bf16_sum,
    .int8_sum = lcomm_scalar_int8_sum,
    .f32_count_not_finite = lcomm_scalar_f32_count_not_finite,
    .ef.f32_keep_error = lcomm_scalar_f32_keep_error,
    .ef.f32_add_error = lcomm_scalar_f32_add_error,
    .ef.f32_momentum = lcomm_scalar_f32_momentum,
    .ef.accumulate_select = lcomm_scalar_accumulate_select,
    .planes.split2 = lcomm_scalar_split2,
    .planes.split4 = lcomm_scalar_split4,
    .planes.join2 = lcomm_scalar_join2,
    .planes.join4 = lcomm_scalar_join4,
};

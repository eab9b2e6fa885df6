/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "kernels/cuda.h"
#include "kernels/cuda/cuda_dense.h"
#include "kernels/cuda/cuda_launch.h"
#include "kernels/cuda/cuda_topk.h"

const lcomm_cuda_kernels lcomm_cuda_kernels_table = {
    .encode = lcomm_cuda_run_encode,
    .sum = lcomm_cuda_run_sum,
    .combine = lcomm_cuda_run_combine,
    .encode_list = lcomm_cuda_run_encode_list,
    .decode_list = lcomm_cuda_run_decode_list,
    .copy_list = lcomm_cuda_run_copy_list,
    .fetch_list = lcomm_cuda_run_fetch_list,
    .numbers = lcomm_cuda_run_numbers,
    .gates = lcomm_cuda_run_gates,
    .unaligned16_load = lcomm_cuda_run_unaligned16_load,
    .unaligned16_store = lcomm_cuda_run_unaligned16_store,
    .fold = lcomm_cuda_run_fold,
    .add_to_f64 = lcomm_cuda_run_add_to_f64,
    .momentum = lcomm_cuda_run_momentum,
    .mean = lcomm_cuda_run_mean,
    .count_not_finite = lcomm_cuda_run_count_not_finite,
    .count_not_finite_f64 = lcomm_cuda_run_count_not_finite_f64,
    .divide = {.i32 = lcomm_cuda_run_divide_i32,
               .i64 = lcomm_cuda_run_divide_i64,
               .i8 = lcomm_cuda_run_divide_i8,
               .u8 = lcomm_cuda_run_divide_u8},
    .squares = lcomm_cuda_run_squares,
    .squares_f64 = lcomm_cuda_run_squares_f64,
    .clip_to = lcomm_cuda_run_clip_to,
    .clip_to_f64 = lcomm_cuda_run_clip_to_f64,
    .sample = lcomm_cuda_run_sample,
    .sample_add = lcomm_cuda_run_sample_add,
    .split = lcomm_cuda_run_split,
    .join = lcomm_cuda_run_join,
    .lowrank = {.project = lcomm_cuda_run_lowrank_project,
                .turn = lcomm_cuda_run_lowrank_turn,
                .finish = lcomm_cuda_run_lowrank_finish},
    .topk_size = lcomm_cuda_run_topk_size,
    .topk_create = lcomm_cuda_run_topk_create,
    .topk_destroy = lcomm_cuda_run_topk_destroy,
    .topk_encode = lcomm_cuda_run_topk_encode,
    .topk_scratch = lcomm_cuda_run_topk_scratch,
    .topk_add = lcomm_cuda_run_topk_add,
    .topk_decode = lcomm_cuda_run_topk_decode,
    .topk_decode_list = lcomm_cuda_run_topk_decode_list,
    .topk_add_list = lcomm_cuda_run_topk_add_list,
    .topk_commit = lcomm_cuda_run_topk_commit,
    .topk_mask = lcomm_cuda_run_topk_mask,
};

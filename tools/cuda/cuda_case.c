/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/cuda/cuda_case.h"

#include "tools/cuda/cuda_fixture.h"

static const lcomm_gpu_format fp16 = {&lcomm_codec_fp16, LCOMM_CUDA_F16, 2, 0};
static const lcomm_gpu_format bf16 = {&lcomm_codec_bf16, LCOMM_CUDA_BF16, 2, 0};
static const lcomm_gpu_format fp8e4m3 = {&lcomm_codec_fp8e4m3, LCOMM_CUDA_E4M3, 1, 1};
static const lcomm_gpu_format int8 = {&lcomm_codec_int8, LCOMM_CUDA_INT8, 1, sizeof(float)};

const lcomm_gpu_case lcomm_gpu_cases[] = {
    {"fp32 -> fp16", LCOMM_GPU_ENCODE, &fp16, 0.93},
    {"fp16 -> fp32", LCOMM_GPU_DECODE, &fp16, 0.93},
    {"fp32 -> bf16", LCOMM_GPU_ENCODE, &bf16, 0.93},
    {"bf16 -> fp32", LCOMM_GPU_DECODE, &bf16, 0.93},
    {"fp32 -> fp8e4m3", LCOMM_GPU_ENCODE, &fp8e4m3, 0.90},
    {"fp8e4m3 -> fp32", LCOMM_GPU_DECODE, &fp8e4m3, 0.90},
    {"fp32 -> int8", LCOMM_GPU_ENCODE, &int8, 0.90},
    {"int8 -> fp32", LCOMM_GPU_DECODE, &int8, 0.90},
    {"fp16 decoded and added", LCOMM_GPU_ADD, &fp16, 0.92},
    {"bf16 decoded and added", LCOMM_GPU_ADD, &bf16, 0.92},
    {"fp8e4m3 decoded and added", LCOMM_GPU_ADD, &fp8e4m3, 0.92},
    {"int8 decoded and added", LCOMM_GPU_ADD, &int8, 0.92},
    {"8 peers of fp8e4m3 summed", LCOMM_GPU_SUM, &fp8e4m3, 0.90},
    {"8 peers of int8 summed", LCOMM_GPU_SUM, &int8, 0.90},
    {"top-k 1 % with error feedback", LCOMM_GPU_TOPK, NULL, 0.85},
    {"fp32 split into planes", LCOMM_GPU_SPLIT, NULL, 0.0},
};

const size_t lcomm_gpu_case_count = sizeof lcomm_gpu_cases / sizeof *lcomm_gpu_cases;

double lcomm_gpu_case_bytes(const lcomm_gpu_case *what) {
  double coded = 0.0;
  if (what->format) {
    coded = (double)what->format->code_size;
    if (what->format->scale_size > 0) {
      coded += (double)what->format->scale_size / lcomm_format_of(what->format->codec).block;
    }
  }
  switch (what->operation) {
  case LCOMM_GPU_ENCODE:
  case LCOMM_GPU_DECODE:
    return 4.0 + coded;
  case LCOMM_GPU_ADD:
    return 8.0 + coded;
  case LCOMM_GPU_SUM:
    return 4.0 + LCOMM_GPU_PEERS * coded;
  case LCOMM_GPU_TOPK:
    /* gradient and residual read, residual written; 1 % of 16 bytes: a position and
     * a value, written and read again on their way into the payload */
    return 12.0 + 0.01 * 16.0;
  default: /* LCOMM_GPU_SPLIT */
    return 8.0;
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CUDA_CUDA_CASE_H
#define LCOMM_TOOLS_CUDA_CUDA_CASE_H

/* What cuda_bench measures. */

#include "codecs/codec.h"
#include "kernels/cuda.h"

typedef enum lcomm_gpu_operation {
  LCOMM_GPU_ENCODE,
  LCOMM_GPU_DECODE,
  LCOMM_GPU_ADD,
  LCOMM_GPU_SUM, /* of LCOMM_GPU_PEERS payloads */
  LCOMM_GPU_TOPK,
  LCOMM_GPU_SPLIT
} lcomm_gpu_operation;

/* A dense codec, as the host and as the device know it. */
typedef struct lcomm_gpu_format {
  const lcomm_codec *codec;
  lcomm_cuda_kind kind;
  size_t code_size, scale_size; /* of a value, of a block's scale */
} lcomm_gpu_format;

typedef struct lcomm_gpu_case {
  const char *name; /* without a comma */
  lcomm_gpu_operation operation;
  const lcomm_gpu_format *format; /* NULL: none */
  double target;                  /* share of the copy's speed; 0: none */
} lcomm_gpu_case;

extern const lcomm_gpu_case lcomm_gpu_cases[];
extern const size_t lcomm_gpu_case_count;

/* Bytes that a value costs at the least: what has to be read and written once. */
double lcomm_gpu_case_bytes(const lcomm_gpu_case *what);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Many arrays into one and its payload, in one pass: plain ones into any kind, and
 * a coded kind into itself. */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_codes.cuh"
#include "kernels/cuda/cuda_sum.cuh"

LCOMM_DEVICE void sum_encode(int kind, int encoded, const lcomm_sum_args *a) {
  lcomm_thread_values at = lcomm_thread_values_of(a->n, a->parts, a->part);
  float total[LCOMM_VALUES];
  lcomm_coded coded;
  lcomm_total_of(kind, a, &at, total);
  lcomm_store_values(a->destination, at.global, &at, total);
  lcomm_encode_values(encoded, &a->encoded, &at, a->n, total, &coded);
}

/* ------------------------------------------------------------ plain sources */

LCOMM_SUM_KERNEL(plain_to_f32) {
  sum_encode(LCOMM_CUDA_F32, LCOMM_CUDA_F32, &a);
}

LCOMM_SUM_KERNEL(plain_to_f16) {
  sum_encode(LCOMM_CUDA_F32, LCOMM_CUDA_F16, &a);
}

LCOMM_SUM_KERNEL(plain_to_f16_block) {
  sum_encode(LCOMM_CUDA_F32, LCOMM_CUDA_F16_BLOCK, &a);
}

LCOMM_SUM_KERNEL(plain_to_bf16) {
  sum_encode(LCOMM_CUDA_F32, LCOMM_CUDA_BF16, &a);
}

LCOMM_SUM_KERNEL(plain_to_e4m3) {
  sum_encode(LCOMM_CUDA_F32, LCOMM_CUDA_E4M3, &a);
}

LCOMM_SUM_KERNEL(plain_to_e5m2) {
  sum_encode(LCOMM_CUDA_F32, LCOMM_CUDA_E5M2, &a);
}

LCOMM_SUM_KERNEL(plain_to_int8) {
  sum_encode(LCOMM_CUDA_F32, LCOMM_CUDA_INT8, &a);
}

LCOMM_SUM_KERNEL(plain_to_int4) {
  sum_encode(LCOMM_CUDA_F32, LCOMM_CUDA_INT4, &a);
}

LCOMM_SUM_KERNEL(plain_to_sign) {
  sum_encode(LCOMM_CUDA_F32, LCOMM_CUDA_SIGN, &a);
}

LCOMM_SUM_KERNEL(plain_to_int2) {
  sum_encode(LCOMM_CUDA_F32, LCOMM_CUDA_INT2, &a);
}

static int launch_plain(lcomm_cuda_kind encoded, const lcomm_sum_args *args, void *stream) {
  uint32_t blocks = lcomm_dense_blocks(args->n);
  switch (encoded) {
  case LCOMM_CUDA_F32:
    return LCOMM_LAUNCH(plain_to_f32, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_F16:
    return LCOMM_LAUNCH(plain_to_f16, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_F16_BLOCK:
    return LCOMM_LAUNCH(plain_to_f16_block, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_BF16:
    return LCOMM_LAUNCH(plain_to_bf16, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_E4M3:
    return LCOMM_LAUNCH(plain_to_e4m3, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_E5M2:
    return LCOMM_LAUNCH(plain_to_e5m2, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_INT8:
    return LCOMM_LAUNCH(plain_to_int8, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_INT4:
    return LCOMM_LAUNCH(plain_to_int4, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_SIGN:
    return LCOMM_LAUNCH(plain_to_sign, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_INT2:
    return LCOMM_LAUNCH(plain_to_int2, blocks, LCOMM_DENSE_THREADS, stream, *args);
  default:
    return LCOMM_CUDA_INVALID_VALUE;
  }
}

/* ------------------------------------------------------------ coded sources */

LCOMM_SUM_KERNEL(f16_to_f16) {
  sum_encode(LCOMM_CUDA_F16, LCOMM_CUDA_F16, &a);
}

LCOMM_SUM_KERNEL(f16_block_to_f16_block) {
  sum_encode(LCOMM_CUDA_F16_BLOCK, LCOMM_CUDA_F16_BLOCK, &a);
}

LCOMM_SUM_KERNEL(bf16_to_bf16) {
  sum_encode(LCOMM_CUDA_BF16, LCOMM_CUDA_BF16, &a);
}

LCOMM_SUM_KERNEL(e4m3_to_e4m3) {
  sum_encode(LCOMM_CUDA_E4M3, LCOMM_CUDA_E4M3, &a);
}

LCOMM_SUM_KERNEL(e5m2_to_e5m2) {
  sum_encode(LCOMM_CUDA_E5M2, LCOMM_CUDA_E5M2, &a);
}

LCOMM_SUM_KERNEL(int8_to_int8) {
  sum_encode(LCOMM_CUDA_INT8, LCOMM_CUDA_INT8, &a);
}

LCOMM_SUM_KERNEL(int4_to_int4) {
  sum_encode(LCOMM_CUDA_INT4, LCOMM_CUDA_INT4, &a);
}

LCOMM_SUM_KERNEL(sign_to_sign) {
  sum_encode(LCOMM_CUDA_SIGN, LCOMM_CUDA_SIGN, &a);
}

LCOMM_SUM_KERNEL(int2_to_int2) {
  sum_encode(LCOMM_CUDA_INT2, LCOMM_CUDA_INT2, &a);
}

static int launch_coded(lcomm_cuda_kind kind, const lcomm_sum_args *args, void *stream) {
  uint32_t blocks = lcomm_dense_blocks(args->n);
  switch (kind) {
  case LCOMM_CUDA_F16:
    return LCOMM_LAUNCH(f16_to_f16, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_F16_BLOCK:
    return LCOMM_LAUNCH(f16_block_to_f16_block, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_BF16:
    return LCOMM_LAUNCH(bf16_to_bf16, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_E4M3:
    return LCOMM_LAUNCH(e4m3_to_e4m3, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_E5M2:
    return LCOMM_LAUNCH(e5m2_to_e5m2, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_INT8:
    return LCOMM_LAUNCH(int8_to_int8, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_INT4:
    return LCOMM_LAUNCH(int4_to_int4, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_SIGN:
    return LCOMM_LAUNCH(sign_to_sign, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_INT2:
    return LCOMM_LAUNCH(int2_to_int2, blocks, LCOMM_DENSE_THREADS, stream, *args);
  default:
    return LCOMM_CUDA_INVALID_VALUE;
  }
}

int lcomm_launch_sum_encode(lcomm_cuda_kind kind, lcomm_cuda_kind encoded,
                            const lcomm_sum_args *args, void *stream) {
  if (kind == LCOMM_CUDA_F32) {
    return launch_plain(encoded, args, stream);
  }
  return kind == encoded ? launch_coded(kind, args, stream) : LCOMM_CUDA_INVALID_VALUE;
}

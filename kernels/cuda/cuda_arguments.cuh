/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_ARGUMENTS_CUH
#define LCOMM_KERNELS_CUDA_CUDA_ARGUMENTS_CUH

/* From the structures of kernels/cuda.h to the arguments of kernels: launchers check
 * and convert them. */

#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/cuda_dense.h"
#include "kernels/element.h"
#include "kernels/stripe.h"

/* Where an encoder writes, and how. */
typedef struct lcomm_code_args {
  void *code, *scale;
  uint64_t seed;
  const uint64_t *more_seed; /* NULL: nothing is added */
  uint32_t shift;            /* the logarithm of the block */
  uint32_t stochastic;       /* 0 or 1 */
  float up, down;            /* F16: 2^exponent, and its inverse */
} lcomm_code_args;

/* F16_FIXED is F16 with a scale that is not NULL. */
static inline lcomm_cuda_kind lcomm_kernel_kind(lcomm_cuda_kind kind) {
  return kind == LCOMM_CUDA_F16_FIXED ? LCOMM_CUDA_F16 : kind;
}

static inline uint32_t lcomm_block_shift(const lcomm_cuda_code *code) {
  if (code->kind == LCOMM_CUDA_F16_BLOCK) {
    return 7;
  }
  return code->block == 32 ? 5 : code->block == 64 ? 6 : 7;
}

static inline int lcomm_block_is_known(const lcomm_cuda_code *code) {
  switch (code->kind) {
  case LCOMM_CUDA_E4M3:
  case LCOMM_CUDA_E5M2:
  case LCOMM_CUDA_INT8:
  case LCOMM_CUDA_INT4:
  case LCOMM_CUDA_SIGN:
  case LCOMM_CUDA_INT2:
    return code->block == 32 || code->block == 64 || code->block == 128;
  default:
    return 1;
  }
}

/* Is there such a payload at such an address? */
static inline int lcomm_code_is_valid(const lcomm_cuda_code *code) {
  int plain = code->kind == LCOMM_CUDA_F32;
  int scaled = !plain && code->kind != LCOMM_CUDA_F16 && code->kind != LCOMM_CUDA_BF16;
  if ((unsigned)code->kind >= (unsigned)LCOMM_CUDA_KIND_COUNT || !code->code) {
    return 0;
  }
  if ((uintptr_t)code->code % (plain ? 4 : 8) != 0 || !lcomm_block_is_known(code)) {
    return 0;
  }
  return !scaled || (code->scale && (uintptr_t)code->scale % 8 == 0);
}

/* 2^exponent and its inverse are normal numbers. */
static inline int lcomm_exponent_is_valid(const lcomm_cuda_code *code) {
  return code->kind != LCOMM_CUDA_F16_FIXED || (code->exponent >= -126 && code->exponent <= 126);
}

static inline lcomm_code_args lcomm_code_args_of(const lcomm_cuda_code *code) {
  int fixed = code->kind == LCOMM_CUDA_F16_FIXED;
  uint32_t exponent = fixed ? (uint32_t)code->exponent : 0u;
  lcomm_code_args args;
  args.code = code->code;
  args.scale = code->kind == LCOMM_CUDA_F16 ? NULL : code->scale;
  args.seed = code->seed;
  args.more_seed = code->more_seed;
  args.shift = lcomm_block_shift(code);
  args.stochastic = code->stochastic;
  args.up = lcomm_f32_from_bits((127u + exponent) << 23);
  args.down = lcomm_f32_from_bits((127u - exponent) << 23);
  return args;
}

static inline int lcomm_view_is_valid(uint64_t n, uint32_t parts, uint32_t part) {
  return part < parts && n / LCOMM_TILE < INT32_MAX;
}

/* One for each tile. */
static inline uint32_t lcomm_dense_blocks(uint64_t n) {
  return (uint32_t)(n / LCOMM_TILE + (n % LCOMM_TILE != 0));
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Many arrays into one, see kernels/cuda/cuda_sum.cuh; the kernels that encode the
 * result as well are in cuda_sum_encode.cu. */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_sum.cuh"

LCOMM_DEVICE void sum(int kind, const lcomm_sum_args *a) {
  lcomm_thread_values at = lcomm_thread_values_of(a->n, a->parts, a->part);
  float total[LCOMM_VALUES];
  lcomm_total_of(kind, a, &at, total);
  lcomm_store_values(a->destination, at.global, &at, total);
}

LCOMM_SUM_KERNEL(sum_f32) {
  sum(LCOMM_CUDA_F32, &a);
}

LCOMM_SUM_KERNEL(sum_f16) {
  sum(LCOMM_CUDA_F16, &a);
}

LCOMM_SUM_KERNEL(sum_f16_block) {
  sum(LCOMM_CUDA_F16_BLOCK, &a);
}

LCOMM_SUM_KERNEL(sum_bf16) {
  sum(LCOMM_CUDA_BF16, &a);
}

LCOMM_SUM_KERNEL(sum_e4m3) {
  sum(LCOMM_CUDA_E4M3, &a);
}

LCOMM_SUM_KERNEL(sum_e5m2) {
  sum(LCOMM_CUDA_E5M2, &a);
}

LCOMM_SUM_KERNEL(sum_int8) {
  sum(LCOMM_CUDA_INT8, &a);
}

LCOMM_SUM_KERNEL(sum_int4) {
  sum(LCOMM_CUDA_INT4, &a);
}

LCOMM_SUM_KERNEL(sum_sign) {
  sum(LCOMM_CUDA_SIGN, &a);
}

LCOMM_SUM_KERNEL(sum_int2) {
  sum(LCOMM_CUDA_INT2, &a);
}

static int launch(lcomm_cuda_kind kind, const lcomm_sum_args *args, void *stream) {
  uint32_t blocks = lcomm_dense_blocks(args->n);
  bool adds = kind != LCOMM_CUDA_F32 && args->op == LCOMM_CUDA_SUM;
  if (adds && args->count == 1) {
    return lcomm_launch_decode(kind, args, stream);
  }
  if (adds && args->count == 2 && args->plain != 0) {
    return lcomm_launch_add(kind, args, stream);
  }
  switch (kind) {
  case LCOMM_CUDA_F32:
    return LCOMM_LAUNCH(sum_f32, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_F16:
    return LCOMM_LAUNCH(sum_f16, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_F16_BLOCK:
    return LCOMM_LAUNCH(sum_f16_block, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_BF16:
    return LCOMM_LAUNCH(sum_bf16, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_E4M3:
    return LCOMM_LAUNCH(sum_e4m3, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_E5M2:
    return LCOMM_LAUNCH(sum_e5m2, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_INT8:
    return LCOMM_LAUNCH(sum_int8, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_INT4:
    return LCOMM_LAUNCH(sum_int4, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_SIGN:
    return LCOMM_LAUNCH(sum_sign, blocks, LCOMM_DENSE_THREADS, stream, *args);
  case LCOMM_CUDA_INT2:
    return LCOMM_LAUNCH(sum_int2, blocks, LCOMM_DENSE_THREADS, stream, *args);
  default:
    return LCOMM_CUDA_INVALID_VALUE;
  }
}

/* Coded sources have one kind and block. `*coded` is one of them, or NULL. */
static bool sources_are_valid(const lcomm_cuda_sum *a, const lcomm_cuda_code **coded) {
  *coded = NULL;
  if (a->count < 1 || a->count > LCOMM_CUDA_SOURCES_MAX) {
    return false;
  }
  for (uint32_t s = 0; s < a->count; s++) {
    const lcomm_cuda_code *source = &a->sources[s];
    if (!lcomm_code_is_valid(source)) {
      return false;
    }
    if (source->kind == LCOMM_CUDA_F32) {
      continue;
    }
    if (*coded && ((*coded)->kind != source->kind ||
                   lcomm_block_shift(*coded) != lcomm_block_shift(source))) {
      return false;
    }
    *coded = source;
  }
  return true;
}

static bool result_is_valid(const lcomm_cuda_sum *a, const lcomm_cuda_code *coded) {
  if (!a->destination || (uintptr_t)a->destination % sizeof(float) != 0) {
    return false;
  }
  if (!a->encoded) {
    return true;
  }
  return lcomm_code_is_valid(a->encoded) && lcomm_exponent_is_valid(a->encoded) &&
         (!coded || lcomm_kernel_kind(coded->kind) == lcomm_kernel_kind(a->encoded->kind));
}

/* One coded source is a decode, where F16_FIXED has its two factors multiplied
 * first, as codecs/fp16.c has. */
static lcomm_sum_args arguments(const lcomm_cuda_sum *a, const lcomm_cuda_code *coded) {
  lcomm_sum_args args = {};
  bool joins =
      a->count == 1 && coded && coded->kind == LCOMM_CUDA_F16_FIXED && a->op == LCOMM_CUDA_SUM;
  for (uint32_t s = 0; s < a->count; s++) {
    const lcomm_cuda_code *source = &a->sources[s];
    bool scaled = source->kind != LCOMM_CUDA_F16;
    args.source[s].code = source->code;
    args.source[s].scale = scaled ? source->scale : NULL;
    args.plain |= (uint64_t)(source->kind == LCOMM_CUDA_F32) << s;
  }
  args.n = a->n;
  args.destination = a->destination;
  args.parts = a->parts;
  args.part = a->part;
  args.count = a->count;
  args.op = (uint32_t)a->op;
  args.shift = coded ? lcomm_block_shift(coded) : 0;
  args.factor = joins ? 1.0f : a->factor;
  args.scale_factor = joins ? a->factor : 1.0f;
  args.copies = a->count == 1 && !coded && lcomm_f32_bits(a->factor) == lcomm_f32_bits(1.0f);
  if (a->encoded) {
    args.encoded = lcomm_code_args_of(a->encoded);
  }
  return args;
}

extern "C" int lcomm_cuda_run_sum(const lcomm_cuda_sum *a, void *stream) {
  const lcomm_cuda_code *coded;
  if (a->n == 0) {
    return 0;
  }
  if ((unsigned)a->op > (unsigned)LCOMM_CUDA_MAX || !lcomm_view_is_valid(a->n, a->parts, a->part) ||
      !sources_are_valid(a, &coded) || !result_is_valid(a, coded)) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  lcomm_sum_args args = arguments(a, coded);
  lcomm_cuda_kind kind = coded ? lcomm_kernel_kind(coded->kind) : LCOMM_CUDA_F32;
  if (!a->encoded) {
    return launch(kind, &args, stream);
  }
  return lcomm_launch_sum_encode(kind, lcomm_kernel_kind(a->encoded->kind), &args, stream);
}

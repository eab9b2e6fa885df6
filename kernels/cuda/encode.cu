/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Plain values into a payload, with or without error feedback. Source and
 * residual are read once, payload and residual are written once. */

#include <grid.cuh>

#include "kernels/cuda/codes.cuh"

typedef struct encode_args {
  const float *source;
  float *residual;
  uint64_t n;
  uint32_t parts, part, feedback;
  float weight;
  lcomm_code_args code;
} encode_args;

LCOMM_DEVICE void decode_coded(int kind, const lcomm_coded *coded, const float value[LCOMM_VALUES],
                               float decoded[LCOMM_VALUES]) {
  LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
    if (kind != LCOMM_CUDA_F32)
      lcomm_piece_values(kind, coded->word[j], coded->unit[j], decoded + 4 * j);
  }
  LCOMM_UNROLL for (int i = 0; i < LCOMM_VALUES; i++) {
    decoded[i] = kind == LCOMM_CUDA_F32 ? value[i] : decoded[i];
  }
}

/* What was sent in the place of `value` leaves this in the residual. Nothing of
 * it is NaN, so any NaN of `decoded` does. */
LCOMM_DEVICE float residual_after(const encode_args *a, float residual, float value,
                                  float decoded) {
  float kept = lcomm_error_kept(value, decoded);
  if (a->feedback == LCOMM_CUDA_FEEDBACK_SEND)
    return kept;
  float weighted = a->weight * kept;
  return lcomm_finite_or_zero(residual + weighted);
}

LCOMM_DEVICE void encode(int kind, const encode_args *a) {
  lcomm_place at = lcomm_place_of(a->n, a->parts, a->part);
  float value[LCOMM_VALUES], residual[LCOMM_VALUES] = {0}, decoded[LCOMM_VALUES];
  lcomm_coded coded;
  lcomm_load_values(a->source, at.global, &at, value);
  if (a->feedback != LCOMM_CUDA_FEEDBACK_NONE)
    lcomm_load_values(a->residual, at.global, &at, residual);
  if (a->feedback == LCOMM_CUDA_FEEDBACK_SEND) {
    LCOMM_UNROLL for (int i = 0; i < LCOMM_VALUES; i++) {
      value[i] = lcomm_sum_f32(residual[i], value[i]);
    }
  }
  lcomm_encode_values(kind, &a->code, &at, a->n, value, &coded);
  if (a->feedback == LCOMM_CUDA_FEEDBACK_NONE)
    return;
  decode_coded(kind, &coded, value, decoded);
  LCOMM_UNROLL for (int i = 0; i < LCOMM_VALUES; i++) {
    residual[i] = residual_after(a, residual[i], value[i], decoded[i]);
  }
  lcomm_store_values(a->residual, at.global, &at, residual);
}

LCOMM_KERNEL(encode_f32, encode_args) {
  encode(LCOMM_CUDA_F32, &a);
}

LCOMM_KERNEL(encode_f16, encode_args) {
  encode(LCOMM_CUDA_F16, &a);
}

LCOMM_KERNEL(encode_f16_block, encode_args) {
  encode(LCOMM_CUDA_F16_BLOCK, &a);
}

LCOMM_KERNEL(encode_bf16, encode_args) {
  encode(LCOMM_CUDA_BF16, &a);
}

LCOMM_KERNEL(encode_e4m3, encode_args) {
  encode(LCOMM_CUDA_E4M3, &a);
}

LCOMM_KERNEL(encode_e5m2, encode_args) {
  encode(LCOMM_CUDA_E5M2, &a);
}

LCOMM_KERNEL(encode_int8, encode_args) {
  encode(LCOMM_CUDA_INT8, &a);
}

LCOMM_KERNEL(encode_int4, encode_args) {
  encode(LCOMM_CUDA_INT4, &a);
}

static int launch(lcomm_cuda_kind kind, encode_args args, void *stream) {
  uint32_t blocks = lcomm_dense_blocks(args.n);
  switch (lcomm_kernel_kind(kind)) {
  case LCOMM_CUDA_F32:
    return LCOMM_LAUNCH(encode_f32, blocks, LCOMM_DENSE_THREADS, stream, args);
  case LCOMM_CUDA_F16:
    return LCOMM_LAUNCH(encode_f16, blocks, LCOMM_DENSE_THREADS, stream, args);
  case LCOMM_CUDA_F16_BLOCK:
    return LCOMM_LAUNCH(encode_f16_block, blocks, LCOMM_DENSE_THREADS, stream, args);
  case LCOMM_CUDA_BF16:
    return LCOMM_LAUNCH(encode_bf16, blocks, LCOMM_DENSE_THREADS, stream, args);
  case LCOMM_CUDA_E4M3:
    return LCOMM_LAUNCH(encode_e4m3, blocks, LCOMM_DENSE_THREADS, stream, args);
  case LCOMM_CUDA_E5M2:
    return LCOMM_LAUNCH(encode_e5m2, blocks, LCOMM_DENSE_THREADS, stream, args);
  case LCOMM_CUDA_INT8:
    return LCOMM_LAUNCH(encode_int8, blocks, LCOMM_DENSE_THREADS, stream, args);
  case LCOMM_CUDA_INT4:
    return LCOMM_LAUNCH(encode_int4, blocks, LCOMM_DENSE_THREADS, stream, args);
  default:
    return LCOMM_CUDA_INVALID_VALUE;
  }
}

static bool array_is_valid(const float *array) {
  return array != NULL && (uintptr_t)array % sizeof *array == 0;
}

extern "C" int lcomm_cuda_run_encode(const lcomm_cuda_encode *a, void *stream) {
  if (a->n == 0)
    return 0;
  bool feeds_back = a->feedback != LCOMM_CUDA_FEEDBACK_NONE;
  if ((unsigned)a->feedback >= (unsigned)LCOMM_CUDA_FEEDBACK_COUNT || !array_is_valid(a->source) ||
      (feeds_back && !array_is_valid(a->residual)))
    return LCOMM_CUDA_INVALID_VALUE;
  if (!lcomm_view_is_valid(a->n, a->parts, a->part) || !lcomm_code_is_valid(&a->code) ||
      !lcomm_exponent_is_valid(&a->code))
    return LCOMM_CUDA_INVALID_VALUE;
  encode_args args;
  args.source = a->source;
  args.residual = a->residual;
  args.n = a->n;
  args.parts = a->parts;
  args.part = a->part;
  args.feedback = (uint32_t)a->feedback;
  args.weight = a->weight;
  args.code = lcomm_code_args_of(&a->code);
  return launch(a->code.kind, args, stream);
}

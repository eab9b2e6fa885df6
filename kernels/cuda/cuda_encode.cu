/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Plain values into a payload, with or without error feedback. Source and
 * residual are read once, payload and residual are written once. */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_codes.cuh"
#include "kernels/cuda/cuda_list.cuh"

typedef struct encode_args {
  const float *source, *before;
  float *residual;
  uint64_t n;
  uint32_t parts, part, feedback;
  float weight;
  lcomm_code_args code;
} encode_args;

LCOMM_DEVICE void decode_coded(int kind, const lcomm_coded *coded, const float value[LCOMM_VALUES],
                               float decoded[LCOMM_VALUES]) {
  LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
    if (kind != LCOMM_CUDA_F32) {
      lcomm_piece_values(kind, coded->word[j], coded->unit[j], decoded + 4 * j);
    }
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
  if (a->feedback == LCOMM_CUDA_FEEDBACK_SEND) {
    return kept;
  }
  float weighted = a->weight * kept;
  return lcomm_finite_or_zero(residual + weighted);
}

LCOMM_DEVICE void encode(int kind, int feeds_back, const encode_args *a, uint32_t tile) {
  lcomm_thread_values at = lcomm_thread_values_at(tile, a->n, a->parts, a->part);
  float value[LCOMM_VALUES], residual[LCOMM_VALUES] = {0}, decoded[LCOMM_VALUES];
  lcomm_coded coded;
  lcomm_load_values(a->source, at.global, &at, value);
  if (feeds_back) {
    lcomm_load_values(a->before, at.global, &at, residual);
  }
  if (feeds_back && a->feedback == LCOMM_CUDA_FEEDBACK_SEND) {
    LCOMM_UNROLL for (int i = 0; i < LCOMM_VALUES; i++) {
      value[i] = lcomm_sum_f32(residual[i], value[i]);
    }
  }
  lcomm_encode_values(kind, &a->code, &at, a->n, value, &coded);
  if (!feeds_back) {
    return;
  }
  decode_coded(kind, &coded, value, decoded);
  LCOMM_UNROLL for (int i = 0; i < LCOMM_VALUES; i++) {
    residual[i] = residual_after(a, residual[i], value[i], decoded[i]);
  }
  lcomm_store_values(a->residual, at.global, &at, residual);
}

/* Many payloads, each in blocks of its own. */
typedef struct encode_list_args {
  lcomm_list_blocks blocks;
  encode_args piece[LCOMM_CUDA_LIST_MAX];
} encode_list_args;

LCOMM_DEVICE void encode_list(int kind, int feeds_back, const encode_list_args *a) {
  lcomm_list_place place = lcomm_list_place_of(&a->blocks);
  encode(kind, feeds_back, &a->piece[place.piece], place.block);
}

/* Two kernels for each kind: the one without a residual has half the registers, so
 * that twice as many threads keep the memory busy. */
#define ENCODERS(name, kind)                                                                       \
  LCOMM_KERNEL(encode_##name, encode_args) { encode(kind, 0, &a, lcomm_block()); }                 \
  LCOMM_KERNEL(encode_back_##name, encode_args) { encode(kind, 1, &a, lcomm_block()); }            \
  LCOMM_KERNEL(encode_list_##name, encode_list_args) { encode_list(kind, 0, &a); }                 \
  LCOMM_KERNEL(encode_list_back_##name, encode_list_args) { encode_list(kind, 1, &a); }            \
  static int run_list_##name(const encode_list_args *args, void *stream) {                         \
    uint32_t blocks = lcomm_list_blocks_all(&args->blocks), threads = LCOMM_DENSE_THREADS;         \
    return args->piece[0].feedback == LCOMM_CUDA_FEEDBACK_NONE                                     \
               ? LCOMM_LAUNCH(encode_list_##name, blocks, threads, stream, *args)                  \
               : LCOMM_LAUNCH(encode_list_back_##name, blocks, threads, stream, *args);            \
  }                                                                                                \
  static int run_##name(const encode_args *args, void *stream) {                                   \
    uint32_t blocks = lcomm_dense_blocks(args->n), threads = LCOMM_DENSE_THREADS;                  \
    return args->feedback == LCOMM_CUDA_FEEDBACK_NONE                                              \
               ? LCOMM_LAUNCH(encode_##name, blocks, threads, stream, *args)                       \
               : LCOMM_LAUNCH(encode_back_##name, blocks, threads, stream, *args);                 \
  }

ENCODERS(f32, LCOMM_CUDA_F32)
ENCODERS(f16, LCOMM_CUDA_F16)
ENCODERS(f16_block, LCOMM_CUDA_F16_BLOCK)
ENCODERS(bf16, LCOMM_CUDA_BF16)
ENCODERS(e4m3, LCOMM_CUDA_E4M3)
ENCODERS(e5m2, LCOMM_CUDA_E5M2)
ENCODERS(int8, LCOMM_CUDA_INT8)
ENCODERS(int4, LCOMM_CUDA_INT4)
ENCODERS(sign, LCOMM_CUDA_SIGN)
ENCODERS(int2, LCOMM_CUDA_INT2)

static int launch(lcomm_cuda_kind kind, const encode_args *args, void *stream) {
  switch (lcomm_kernel_kind(kind)) {
  case LCOMM_CUDA_F32:
    return run_f32(args, stream);
  case LCOMM_CUDA_F16:
    return run_f16(args, stream);
  case LCOMM_CUDA_F16_BLOCK:
    return run_f16_block(args, stream);
  case LCOMM_CUDA_BF16:
    return run_bf16(args, stream);
  case LCOMM_CUDA_E4M3:
    return run_e4m3(args, stream);
  case LCOMM_CUDA_E5M2:
    return run_e5m2(args, stream);
  case LCOMM_CUDA_INT8:
    return run_int8(args, stream);
  case LCOMM_CUDA_INT4:
    return run_int4(args, stream);
  case LCOMM_CUDA_SIGN:
    return run_sign(args, stream);
  case LCOMM_CUDA_INT2:
    return run_int2(args, stream);
  default:
    return LCOMM_CUDA_INVALID_VALUE;
  }
}

static int launch_list(lcomm_cuda_kind kind, const encode_list_args *args, void *stream) {
  switch (lcomm_kernel_kind(kind)) {
  case LCOMM_CUDA_F32:
    return run_list_f32(args, stream);
  case LCOMM_CUDA_F16:
    return run_list_f16(args, stream);
  case LCOMM_CUDA_F16_BLOCK:
    return run_list_f16_block(args, stream);
  case LCOMM_CUDA_BF16:
    return run_list_bf16(args, stream);
  case LCOMM_CUDA_E4M3:
    return run_list_e4m3(args, stream);
  case LCOMM_CUDA_E5M2:
    return run_list_e5m2(args, stream);
  case LCOMM_CUDA_INT8:
    return run_list_int8(args, stream);
  case LCOMM_CUDA_INT4:
    return run_list_int4(args, stream);
  case LCOMM_CUDA_SIGN:
    return run_list_sign(args, stream);
  case LCOMM_CUDA_INT2:
    return run_list_int2(args, stream);
  default:
    return LCOMM_CUDA_INVALID_VALUE;
  }
}

static bool array_is_valid(const float *array) {
  return array != NULL && (uintptr_t)array % sizeof *array == 0;
}

static bool encode_is_valid(const lcomm_cuda_encode *a) {
  bool feeds_back = a->feedback != LCOMM_CUDA_FEEDBACK_NONE;
  if ((unsigned)a->feedback >= (unsigned)LCOMM_CUDA_FEEDBACK_COUNT || !array_is_valid(a->source) ||
      (feeds_back && !array_is_valid(a->residual)) || (a->before && !array_is_valid(a->before))) {
    return false;
  }
  return lcomm_view_is_valid(a->n, a->parts, a->part) && lcomm_code_is_valid(&a->code) &&
         lcomm_exponent_is_valid(&a->code);
}

static encode_args encode_args_of(const lcomm_cuda_encode *a) {
  encode_args args;
  args.source = a->source;
  args.residual = a->residual;
  args.before = a->before && a->feedback == LCOMM_CUDA_FEEDBACK_SEND ? a->before : a->residual;
  args.n = a->n;
  args.parts = a->parts;
  args.part = a->part;
  args.feedback = (uint32_t)a->feedback;
  args.weight = a->weight;
  args.code = lcomm_code_args_of(&a->code);
  return args;
}

extern "C" int lcomm_cuda_run_encode(const lcomm_cuda_encode *a, void *stream) {
  if (a->n == 0) {
    return 0;
  }
  if (!encode_is_valid(a)) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  encode_args args = encode_args_of(a);
  return launch(a->code.kind, &args, stream);
}

extern "C" int lcomm_cuda_run_encode_list(const lcomm_cuda_encode *list, uint32_t count,
                                          void *stream) {
  encode_list_args args = {};
  if (count == 0) {
    return 0;
  }
  if (count > LCOMM_CUDA_LIST_MAX) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  for (uint32_t i = 0; i < count; i++) {
    const lcomm_cuda_encode *a = &list[i];
    if (a->code.kind != list[0].code.kind || a->feedback != list[0].feedback ||
        !encode_is_valid(a) || !lcomm_list_add(&args.blocks, lcomm_dense_blocks(a->n))) {
      return LCOMM_CUDA_INVALID_VALUE;
    }
    args.piece[i] = encode_args_of(a);
  }
  return launch_list(list[0].code.kind, &args, stream);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* One payload into plain values, or added to them: sums of one and of two sources,
 * without what sums of more need. Codes are few bytes, so it takes many threads,
 * and all loads of a thread on their way at once, to keep the memory busy. */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_list.cuh"
#include "kernels/cuda/cuda_sum.cuh"

/* ----------------------------------------------------------------- one source */

/* A thread holds no more than the values of a piece: pieces are stored one by one,
 * and elements once more where a NaN turned up (no source is the destination). */

typedef struct decode_args {
  const void *code, *scale;
  float *destination;
  uint64_t n;
  uint32_t parts, part, shift;
  float factor, scale_factor;
} decode_args;

LCOMM_DEVICE void decode_nan_exact(int kind, const decode_args *a, const lcomm_thread_values *at) {
  LCOMM_ROLLED for (int e = 0; e < LCOMM_VALUES; e++) {
    int distance = lcomm_distance(e);
    if (distance >= at->left) {
      continue;
    }
    uint64_t i = at->local + (uint64_t)distance;
    float unit = lcomm_unit_of(kind, a->scale, a->shift, a->scale_factor, i);
    float value = lcomm_product_f32(unit, lcomm_element_of(kind, a->code, i));
    a->destination[at->global + (uint64_t)distance] = lcomm_product_f32(a->factor, value);
  }
}

LCOMM_DEVICE void store_piece(float *destination, int vectors, int32_t left,
                              const float value[LCOMM_PIECE]) {
  if (vectors) {
    lcomm_vec4 v = {lcomm_f32_bits(value[0]), lcomm_f32_bits(value[1]), lcomm_f32_bits(value[2]),
                    lcomm_f32_bits(value[3])};
    lcomm_store4_once(destination, v);
    return;
  }
  LCOMM_UNROLL for (int i = 0; i < LCOMM_PIECE; i++) {
    if (i < left) {
      destination[i] = value[i];
    }
  }
}

LCOMM_DEVICE void decode(int kind, const decode_args *a, uint32_t tile) {
  lcomm_thread_values at = lcomm_thread_values_at(tile, a->n, a->parts, a->part);
  int vectors = lcomm_by_vectors(a->destination, &at), nan = 0;
  lcomm_sum_source source = {a->code, a->scale};
  lcomm_sum_codes codes;
  lcomm_load_source(kind, a->shift, &source, &at, &codes);
  float scale = lcomm_scale_value(kind, codes.scale), value[LCOMM_PIECE];
  if (kind == LCOMM_CUDA_F16) {
    scale = a->scale_factor * scale;
  }
  LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
    float unit = lcomm_piece_scale(kind, scale, a->shift, j);
    lcomm_piece_values(kind, codes.word[j], unit, value);
    LCOMM_UNROLL for (int i = 0; i < LCOMM_PIECE; i++) {
      value[i] = a->factor * value[i];
      nan |= lcomm_is_nan(value[i]);
    }
    store_piece(a->destination + at.global + j * LCOMM_STEP, vectors, at.left - j * LCOMM_STEP,
                value);
  }
  if (nan) {
    decode_nan_exact(kind, a, &at);
  }
}

/* Many payloads, each in blocks of its own. */
typedef struct decode_list_args {
  lcomm_list_blocks blocks;
  decode_args piece[LCOMM_CUDA_LIST_MAX];
} decode_list_args;

LCOMM_DEVICE void decode_list(int kind, const decode_list_args *a) {
  lcomm_list_place place = lcomm_list_place_of(&a->blocks);
  decode(kind, &a->piece[place.piece], place.block);
}

/* ---------------------------------------------------------------- two sources */

/* Neither order of the two makes another sum, unless it is NaN. */
LCOMM_DEVICE void add(int kind, const lcomm_sum_args *a) {
  lcomm_thread_values at = lcomm_thread_values_of(a->n, a->parts, a->part);
  uint32_t coded = a->plain & 1 ? 1 : 0;
  float total[LCOMM_VALUES], value[LCOMM_VALUES];
  lcomm_sum_codes codes;
  lcomm_load_source(kind, a->shift, &a->source[coded], &at, &codes);
  lcomm_load_plain(&a->source[1 - coded], &at, total);
  lcomm_source_values(kind, a->shift, a->scale_factor, &codes, value);
  lcomm_add_values(total, value);
  lcomm_total_finish(kind, a, &at, total);
  lcomm_store_values(a->destination, at.global, &at, total);
}

/* ------------------------------------------------------------------ launching */

static decode_args decode_args_of(const lcomm_sum_args *sum) {
  decode_args args = {
      sum->source[0].code, sum->source[0].scale, sum->destination, sum->n,           sum->parts,
      sum->part,           sum->shift,           sum->factor,      sum->scale_factor};
  return args;
}

#define DECODERS(name, kind)                                                                       \
  LCOMM_KERNEL(decode_##name, decode_args) { decode(kind, &a, lcomm_block()); }                    \
  LCOMM_KERNEL(decode_list_##name, decode_list_args) { decode_list(kind, &a); }                    \
  LCOMM_KERNEL(add_##name, lcomm_sum_args) { add(kind, &a); }                                      \
  static int run_decode_##name(const lcomm_sum_args *args, void *stream) {                         \
    return LCOMM_LAUNCH(decode_##name, lcomm_dense_blocks(args->n), LCOMM_DENSE_THREADS, stream,   \
                        decode_args_of(args));                                                     \
  }                                                                                                \
  static int run_decode_list_##name(const decode_list_args *args, void *stream) {                  \
    return LCOMM_LAUNCH(decode_list_##name, lcomm_list_blocks_all(&args->blocks),                  \
                        LCOMM_DENSE_THREADS, stream, *args);                                       \
  }                                                                                                \
  static int run_add_##name(const lcomm_sum_args *args, void *stream) {                            \
    return LCOMM_LAUNCH(add_##name, lcomm_dense_blocks(args->n), LCOMM_DENSE_THREADS, stream,      \
                        *args);                                                                    \
  }

DECODERS(f16, LCOMM_CUDA_F16)
DECODERS(f16_block, LCOMM_CUDA_F16_BLOCK)
DECODERS(bf16, LCOMM_CUDA_BF16)
DECODERS(e4m3, LCOMM_CUDA_E4M3)
DECODERS(e5m2, LCOMM_CUDA_E5M2)
DECODERS(int8, LCOMM_CUDA_INT8)
DECODERS(int4, LCOMM_CUDA_INT4)
DECODERS(sign, LCOMM_CUDA_SIGN)
DECODERS(int2, LCOMM_CUDA_INT2)

int lcomm_launch_decode(lcomm_cuda_kind kind, const lcomm_sum_args *args, void *stream) {
  switch (kind) {
  case LCOMM_CUDA_F16:
    return run_decode_f16(args, stream);
  case LCOMM_CUDA_F16_BLOCK:
    return run_decode_f16_block(args, stream);
  case LCOMM_CUDA_BF16:
    return run_decode_bf16(args, stream);
  case LCOMM_CUDA_E4M3:
    return run_decode_e4m3(args, stream);
  case LCOMM_CUDA_E5M2:
    return run_decode_e5m2(args, stream);
  case LCOMM_CUDA_INT8:
    return run_decode_int8(args, stream);
  case LCOMM_CUDA_INT4:
    return run_decode_int4(args, stream);
  case LCOMM_CUDA_SIGN:
    return run_decode_sign(args, stream);
  case LCOMM_CUDA_INT2:
    return run_decode_int2(args, stream);
  default:
    return LCOMM_CUDA_INVALID_VALUE;
  }
}

int lcomm_launch_add(lcomm_cuda_kind kind, const lcomm_sum_args *args, void *stream) {
  switch (kind) {
  case LCOMM_CUDA_F16:
    return run_add_f16(args, stream);
  case LCOMM_CUDA_F16_BLOCK:
    return run_add_f16_block(args, stream);
  case LCOMM_CUDA_BF16:
    return run_add_bf16(args, stream);
  case LCOMM_CUDA_E4M3:
    return run_add_e4m3(args, stream);
  case LCOMM_CUDA_E5M2:
    return run_add_e5m2(args, stream);
  case LCOMM_CUDA_INT8:
    return run_add_int8(args, stream);
  case LCOMM_CUDA_INT4:
    return run_add_int4(args, stream);
  case LCOMM_CUDA_SIGN:
    return run_add_sign(args, stream);
  case LCOMM_CUDA_INT2:
    return run_add_int2(args, stream);
  default:
    return LCOMM_CUDA_INVALID_VALUE;
  }
}

static int launch_decode_list(lcomm_cuda_kind kind, const decode_list_args *args, void *stream) {
  switch (lcomm_kernel_kind(kind)) {
  case LCOMM_CUDA_F16:
    return run_decode_list_f16(args, stream);
  case LCOMM_CUDA_F16_BLOCK:
    return run_decode_list_f16_block(args, stream);
  case LCOMM_CUDA_BF16:
    return run_decode_list_bf16(args, stream);
  case LCOMM_CUDA_E4M3:
    return run_decode_list_e4m3(args, stream);
  case LCOMM_CUDA_E5M2:
    return run_decode_list_e5m2(args, stream);
  case LCOMM_CUDA_INT8:
    return run_decode_list_int8(args, stream);
  case LCOMM_CUDA_INT4:
    return run_decode_list_int4(args, stream);
  case LCOMM_CUDA_SIGN:
    return run_decode_list_sign(args, stream);
  case LCOMM_CUDA_INT2:
    return run_decode_list_int2(args, stream);
  default:
    return LCOMM_CUDA_INVALID_VALUE;
  }
}

static bool decode_is_valid(const lcomm_cuda_decode *a) {
  return lcomm_code_is_valid(&a->code) && a->destination &&
         (uintptr_t)a->destination % sizeof(float) == 0 &&
         lcomm_view_is_valid(a->n, a->parts, a->part);
}

static decode_args decode_piece_of(const lcomm_cuda_decode *a) {
  const void *scale = a->code.kind == LCOMM_CUDA_F16 ? NULL : a->code.scale;
  decode_args args = {
      a->code.code, scale, a->destination, a->n, a->parts, a->part, lcomm_block_shift(&a->code),
      1.0f,         1.0f};
  return args;
}

extern "C" int lcomm_cuda_run_decode_list(const lcomm_cuda_decode *list, uint32_t count,
                                          void *stream) {
  decode_list_args args = {};
  if (count == 0) {
    return 0;
  }
  if (count > LCOMM_CUDA_LIST_MAX) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (list[i].code.kind != list[0].code.kind || !decode_is_valid(&list[i]) ||
        !lcomm_list_add(&args.blocks, lcomm_dense_blocks(list[i].n))) {
      return LCOMM_CUDA_INVALID_VALUE;
    }
    args.piece[i] = decode_piece_of(&list[i]);
  }
  return launch_decode_list(list[0].code.kind, &args, stream);
}

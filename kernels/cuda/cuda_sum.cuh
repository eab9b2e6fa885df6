/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_SUM_CUH
#define LCOMM_KERNELS_CUDA_CUDA_SUM_CUH

/* Sums of many arrays, of which some may be plain and the others have one kind:
 * the 16 totals of a thread stay in registers while all sources are added to
 * them, in their order, and each source is read once.
 *
 * A device does not keep the bits of a NaN. If a total is NaN, the thread sums its
 * sources again by cuda_nan_exact.cuh, before it stores anything (a source may be the
 * destination).
 */

#include "kernels/cuda/cuda_nan_exact.cuh"

typedef struct lcomm_sum_source {
  const void *code; /* or plain values */
  const void *scale;
} lcomm_sum_source;

typedef struct lcomm_sum_args {
  lcomm_sum_source source[LCOMM_CUDA_SOURCES_MAX];
  uint64_t plain; /* bit s: source s has plain values */
  uint64_t n;
  float *destination;
  uint32_t parts, part, count, op;
  uint32_t shift;     /* the logarithm of the block of coded sources */
  uint32_t copies;    /* one plain source and nothing to do */
  float factor;       /* of the total */
  float scale_factor; /* of the scale of F16 */
  lcomm_code_args encoded;
} lcomm_sum_args;

/* As LCOMM_KERNEL. Totals and codes of a block take a third of a multiprocessor's
 * registers if they may; a quarter is enough where the compiler spills none then. */
#if __CUDA_ARCH__ >= 900
#define LCOMM_SUM_KERNEL(name) LCOMM_KERNEL_BESIDE(name, lcomm_sum_args, 4)
#else
#define LCOMM_SUM_KERNEL(name) LCOMM_KERNEL(name, lcomm_sum_args)
#endif

/* In cuda_decode.cu: sums of one source of this kind, which is not F32, and of one with
 * a plain one. */
int lcomm_launch_decode(lcomm_cuda_kind kind, const lcomm_sum_args *args, void *stream);
int lcomm_launch_add(lcomm_cuda_kind kind, const lcomm_sum_args *args, void *stream);

/* In cuda_sum_encode.cu: `kind` of the coded sources, F32 when there is none, and the
 * kind of the result. Returns 0 or the number of a cudaError_t. */
int lcomm_launch_sum_encode(lcomm_cuda_kind kind, lcomm_cuda_kind encoded,
                            const lcomm_sum_args *args, void *stream);

enum { LCOMM_SUM_BATCH_MIN = 2, LCOMM_SUM_BATCH_MAX = 4 };

/* Sources whose codes are asked for before the first of them is added. */
LCOMM_DEVICE uint32_t lcomm_sum_batch(int kind) {
  return lcomm_code_bits(kind) == 16 ? LCOMM_SUM_BATCH_MIN : LCOMM_SUM_BATCH_MAX;
}

typedef struct lcomm_sum_codes {
  lcomm_vec2 word[LCOMM_PIECES];
  uint32_t scale;
} lcomm_sum_codes;

LCOMM_DEVICE int lcomm_source_is_plain(const lcomm_sum_args *a, uint32_t source) {
  return (int)(a->plain >> source & 1);
}

LCOMM_DEVICE void lcomm_load_source(int kind, uint32_t shift, const lcomm_sum_source *source,
                                    const lcomm_thread_values *at, lcomm_sum_codes *codes) {
  lcomm_load_codes(kind, source->code, at, codes->word);
  codes->scale = lcomm_load_scale(kind, source->scale, shift, at);
}

LCOMM_DEVICE void lcomm_load_plain(const lcomm_sum_source *source, const lcomm_thread_values *at,
                                   float value[LCOMM_VALUES]) {
  lcomm_load_values((const float *)source->code, at->global, at, value);
}

LCOMM_DEVICE void lcomm_source_values(int kind, uint32_t shift, float scale_factor,
                                      const lcomm_sum_codes *codes, float value[LCOMM_VALUES]) {
  float scale = lcomm_scale_value(kind, codes->scale);
  if (kind == LCOMM_CUDA_F16) {
    scale = scale_factor * scale;
  }
  LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
    float unit = lcomm_piece_scale(kind, scale, shift, j);
    lcomm_piece_values(kind, codes->word[j], unit, value + LCOMM_PIECE * j);
  }
}

LCOMM_DEVICE void lcomm_add_values(float total[LCOMM_VALUES], const float value[LCOMM_VALUES]) {
  LCOMM_UNROLL for (int i = 0; i < LCOMM_VALUES; i++) {
    total[i] = total[i] + value[i];
  }
}

/* --------------------------------------------------------------- all sources */

LCOMM_DEVICE void lcomm_add_plain(const lcomm_sum_args *a, uint32_t source,
                                  const lcomm_thread_values *at, float total[LCOMM_VALUES]) {
  float value[LCOMM_VALUES];
  lcomm_load_plain(&a->source[source], at, value);
  lcomm_add_values(total, value);
}

LCOMM_DEVICE void lcomm_sum_plain(const lcomm_sum_args *a, const lcomm_thread_values *at,
                                  float total[LCOMM_VALUES]) {
  float one[LCOMM_VALUES], other[LCOMM_VALUES];
  uint32_t s = 0;
  LCOMM_ROLLED for (; s + 2 <= a->count; s += 2) {
    lcomm_load_plain(&a->source[s], at, one);
    lcomm_load_plain(&a->source[s + 1], at, other);
    lcomm_add_values(total, one);
    lcomm_add_values(total, other);
  }
  if (s < a->count) {
    lcomm_add_plain(a, s, at, total);
  }
}

/* Adds the coded sources from s on, up to a plain one or a batch of them, and
 * returns how many they were. Nothing else is kept in registers: one that is
 * spilled before its load has completed makes all further loads wait. */
LCOMM_DEVICE uint32_t lcomm_add_coded(int kind, uint32_t shift, uint32_t batch,
                                      const lcomm_sum_args *a, uint32_t s,
                                      const lcomm_thread_values *at, float total[LCOMM_VALUES]) {
  lcomm_sum_codes codes[LCOMM_SUM_BATCH_MAX];
  float value[LCOMM_VALUES];
  uint32_t left = a->count - s, added = 0;
  uint32_t others = (uint32_t)(a->plain >> s) | (left < batch ? ~0u << left : 0u);
  uint32_t row = (others & (0u - others)) - 1; /* the bits below the lowest of the others */
  LCOMM_UNROLL for (uint32_t i = 0; i < batch; i++) {
    if (row & 1u << i) {
      lcomm_load_source(kind, shift, &a->source[s + i], at, &codes[i]);
    }
  }
  LCOMM_UNROLL for (uint32_t i = 0; i < batch; i++) {
    if (row & 1u << i) {
      lcomm_source_values(kind, shift, a->scale_factor, &codes[i], value);
      lcomm_add_values(total, value);
      added++;
    }
  }
  return added;
}

/* A plain source that comes first is the initial total, so that its loads are in
 * flight together with those of the next sources. */
LCOMM_DEVICE void lcomm_sum_coded(int kind, uint32_t shift, uint32_t batch, const lcomm_sum_args *a,
                                  const lcomm_thread_values *at, float total[LCOMM_VALUES]) {
  uint32_t s = 0;
  if (lcomm_source_is_plain(a, 0)) {
    lcomm_load_plain(&a->source[0], at, total);
    s = 1;
  }
  LCOMM_ROLLED while (s < a->count) {
    if (lcomm_source_is_plain(a, s)) {
      lcomm_add_plain(a, s++, at, total);
    } else {
      s += lcomm_add_coded(kind, shift, batch, a, s, at, total);
    }
  }
}

/* The logarithm of the block that a codec has unless it is told otherwise. */
LCOMM_DEVICE uint32_t lcomm_standard_shift(int kind) {
  return kind == LCOMM_CUDA_INT4 ? 5 : 7;
}

/* Full warps with the standard block size have a specialised path without the
 * branches of the other cases. */
LCOMM_DEVICE void lcomm_sum_sources(int kind, const lcomm_sum_args *a,
                                    const lcomm_thread_values *at, float total[LCOMM_VALUES]) {
  lcomm_thread_values whole = *at;
  whole.whole = 1;
  whole.left = LCOMM_SPAN - (int32_t)(lcomm_lane() * LCOMM_PIECE);
  if (kind == LCOMM_CUDA_F32) {
    lcomm_sum_plain(a, at, total);
  } else if (at->whole && a->shift == lcomm_standard_shift(kind)) {
    lcomm_sum_coded(kind, lcomm_standard_shift(kind), lcomm_sum_batch(kind), a, &whole, total);
  } else {
    lcomm_sum_coded(kind, a->shift, LCOMM_SUM_BATCH_MIN, a, at, total);
  }
}

/* Minimum or maximum, one source at a time. */
LCOMM_DEVICE void lcomm_pick_sources(int kind, const lcomm_sum_args *a,
                                     const lcomm_thread_values *at, float total[LCOMM_VALUES]) {
  lcomm_sum_codes codes;
  float value[LCOMM_VALUES];
  LCOMM_ROLLED for (uint32_t s = 0; s < a->count; s++) {
    if (kind == LCOMM_CUDA_F32 || lcomm_source_is_plain(a, s)) {
      lcomm_load_plain(&a->source[s], at, value);
    } else {
      lcomm_load_source(kind, a->shift, &a->source[s], at, &codes);
      lcomm_source_values(kind, a->shift, a->scale_factor, &codes, value);
    }
    LCOMM_UNROLL for (int i = 0; i < LCOMM_VALUES; i++) {
      total[i] = a->op == LCOMM_CUDA_MIN ? lcomm_least(total[i], value[i])
                                         : lcomm_greatest(total[i], value[i]);
    }
  }
}

/* ---------------------------------------------------------------- exact NaN */

LCOMM_DEVICE float lcomm_nan_exact_source(int kind, const lcomm_sum_args *a, uint32_t source,
                                          uint64_t local, uint64_t global) {
  const lcomm_sum_source *from = &a->source[source];
  if (kind == LCOMM_CUDA_F32 || lcomm_source_is_plain(a, source)) {
    return ((const float *)from->code)[global];
  }
  float unit = lcomm_unit_of(kind, from->scale, a->shift, a->scale_factor, local);
  return lcomm_product_f32(unit, lcomm_element_of(kind, from->code, local));
}

LCOMM_DEVICE float lcomm_nan_exact_total(int kind, const lcomm_sum_args *a, uint64_t local,
                                         uint64_t global) {
  if (a->copies) {
    return lcomm_nan_exact_source(kind, a, 0, local, global);
  }
  float total = lcomm_identity((int)a->op);
  LCOMM_ROLLED for (uint32_t s = 0; s < a->count; s++) {
    total =
        lcomm_nan_exact_op((int)a->op, total, lcomm_nan_exact_source(kind, a, s, local, global));
  }
  return a->op == LCOMM_CUDA_SUM ? lcomm_product_f32(a->factor, total) : total;
}

LCOMM_DEVICE void lcomm_total_nan_exact(int kind, const lcomm_sum_args *a,
                                        const lcomm_thread_values *at, float total[LCOMM_VALUES]) {
  LCOMM_ROLLED for (int e = 0; e < LCOMM_VALUES; e++) {
    int distance = lcomm_distance(e);
    if (distance >= at->left) {
      continue;
    }
    float again = lcomm_nan_exact_total(kind, a, at->local + (uint64_t)distance,
                                        at->global + (uint64_t)distance);
    LCOMM_UNROLL for (int i = 0; i < LCOMM_VALUES; i++) {
      total[i] = i == e ? again : total[i];
    }
  }
}

/* ------------------------------------------------------------- the 16 totals */

/* From sums, minima or maxima to what is stored; 0 for elements that are not there. */
LCOMM_DEVICE void lcomm_total_finish(int kind, const lcomm_sum_args *a,
                                     const lcomm_thread_values *at, float total[LCOMM_VALUES]) {
  int nan = 0;
  LCOMM_UNROLL for (int i = 0; i < LCOMM_VALUES; i++) {
    total[i] = a->op == LCOMM_CUDA_SUM ? a->factor * total[i] : total[i];
    nan |= lcomm_is_nan(total[i]);
  }
  if (nan) {
    lcomm_total_nan_exact(kind, a, at, total);
  }
  if (at->whole) {
    return;
  }
  LCOMM_UNROLL for (int i = 0; i < LCOMM_VALUES; i++) {
    total[i] = lcomm_distance(i) < at->left ? total[i] : 0.0f;
  }
}

LCOMM_DEVICE void lcomm_total_of(int kind, const lcomm_sum_args *a, const lcomm_thread_values *at,
                                 float total[LCOMM_VALUES]) {
  LCOMM_UNROLL for (int i = 0; i < LCOMM_VALUES; i++) {
    total[i] = lcomm_identity((int)a->op);
  }
  if (a->op != LCOMM_CUDA_SUM) {
    lcomm_pick_sources(kind, a, at, total);
  } else {
    lcomm_sum_sources(kind, a, at, total);
  }
  lcomm_total_finish(kind, a, at, total);
}

#endif

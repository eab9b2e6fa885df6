/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_KERNEL_CASES_H
#define LCOMM_TESTS_KERNELS_KERNEL_CASES_H

/* Every kernel of a table behind one signature: a job in, some arrays out.
 * What an array holds before is part of the job: sums are added to it, and
 * what is around the result must stay as it was.
 */

#include <stdbool.h>

#include "kernels/kernels.h"
#include "tests/kernels/kernel_samples.h"

enum { OUTPUTS = 4 };

typedef struct job {
  size_t n, block;
  float factor;
  const float *source[3];    /* n each */
  const uint16_t *half;      /* n */
  const uint8_t *code;       /* 4 n */
  const float *scale;        /* n / 32 rounded up */
  const uint8_t *scale_byte; /* n / 32 rounded up */
  bool hostile_scales;       /* NaN, Inf and the extremes among them */
  uint64_t seed, first;
  uint32_t threshold;
  size_t capacity; /* at most n */
} job;

typedef struct kernel_case {
  const char *name;
  void (*run)(const lcomm_kernels *table, const job *j, void *const *out);
  struct {
    uint8_t size, align; /* bytes for each of n elements at the most, and 8 more */
  } out[OUTPUTS];
  size_t blocks[4]; /* ended by 0 */
  bool sums;        /* two NaNs may meet, and either may survive */
} kernel_case;

#define WHOLE                                                                                      \
  { LCOMM_BLOCK }
#define INTEGER_BLOCKS                                                                             \
  { 32, 128 }
#define FP8_BLOCKS                                                                                 \
  { 32, 64, 128 }

/* 16 bits */

static void run_f32_to_f16(const lcomm_kernels *k, const job *j, void *const *out) {
  k->half.f32_to_f16(j->source[0], j->factor, out[0], j->n);
}
static void run_f32_to_bf16(const lcomm_kernels *k, const job *j, void *const *out) {
  k->half.f32_to_bf16(j->source[0], out[0], j->n);
}
static void run_f16_to_f32(const lcomm_kernels *k, const job *j, void *const *out) {
  k->half.f16_to_f32(j->half, j->factor, out[0], j->n);
}
static void run_bf16_to_f32(const lcomm_kernels *k, const job *j, void *const *out) {
  k->half.bf16_to_f32(j->half, j->factor, out[0], j->n);
}
static void run_f16_add(const lcomm_kernels *k, const job *j, void *const *out) {
  k->half.f16_add(j->half, j->factor, out[0], j->n);
}
static void run_bf16_add(const lcomm_kernels *k, const job *j, void *const *out) {
  k->half.bf16_add(j->half, j->factor, out[0], j->n);
}

static const kernel_case cases_16_bits[] = {
    {"f32_to_f16", run_f32_to_f16, {{2, 2}}, WHOLE, false},
    {"f32_to_bf16", run_f32_to_bf16, {{2, 2}}, WHOLE, false},
    {"f16_to_f32", run_f16_to_f32, {{4, 4}}, WHOLE, false},
    {"bf16_to_f32", run_bf16_to_f32, {{4, 4}}, WHOLE, false},
    {"f16_add", run_f16_add, {{4, 4}}, WHOLE, true},
    {"bf16_add", run_bf16_add, {{4, 4}}, WHOLE, true},
};

/* int8 and int4 */

static void run_f32_to_int8(const lcomm_kernels *k, const job *j, void *const *out) {
  k->f32_to_int8(j->source[0], j->block, out[0], out[1], j->n);
}
static void run_f32_to_int4(const lcomm_kernels *k, const job *j, void *const *out) {
  k->f32_to_int4(j->source[0], j->block, out[0], out[1], j->n);
}
static void run_int8_to_f32(const lcomm_kernels *k, const job *j, void *const *out) {
  k->int8_to_f32((const int8_t *)j->code, j->scale, j->block, j->factor, out[0], j->n);
}
static void run_int4_to_f32(const lcomm_kernels *k, const job *j, void *const *out) {
  k->int4_to_f32(j->code, j->scale, j->block, j->factor, out[0], j->n);
}
static void run_int8_add(const lcomm_kernels *k, const job *j, void *const *out) {
  k->int8_add((const int8_t *)j->code, j->scale, j->block, j->factor, out[0], j->n);
}
static void run_int4_add(const lcomm_kernels *k, const job *j, void *const *out) {
  k->int4_add(j->code, j->scale, j->block, j->factor, out[0], j->n);
}

static const kernel_case cases_integer_encode[] = {
    {"f32_to_int8", run_f32_to_int8, {{1, 1}, {4, 4}}, INTEGER_BLOCKS, false},
    {"f32_to_int4", run_f32_to_int4, {{1, 1}, {4, 4}}, INTEGER_BLOCKS, false},
};
static const kernel_case cases_integer_decode[] = {
    {"int8_to_f32", run_int8_to_f32, {{4, 4}}, INTEGER_BLOCKS, false},
    {"int4_to_f32", run_int4_to_f32, {{4, 4}}, INTEGER_BLOCKS, false},
    {"int8_add", run_int8_add, {{4, 4}}, INTEGER_BLOCKS, true},
    {"int4_add", run_int4_add, {{4, 4}}, INTEGER_BLOCKS, true},
};

/* fp8 */

static void run_f32_to_e4m3(const lcomm_kernels *k, const job *j, void *const *out) {
  k->f32_to_fp8[LCOMM_E4M3](j->source[0], j->block, out[0], out[1], j->n);
}
static void run_f32_to_e5m2(const lcomm_kernels *k, const job *j, void *const *out) {
  k->f32_to_fp8[LCOMM_E5M2](j->source[0], j->block, out[0], out[1], j->n);
}
static void run_e4m3_stochastic(const lcomm_kernels *k, const job *j, void *const *out) {
  k->f32_to_fp8_stochastic[LCOMM_E4M3](j->source[0], j->block, j->seed, j->first, out[0], out[1],
                                       j->n);
}
static void run_e5m2_stochastic(const lcomm_kernels *k, const job *j, void *const *out) {
  k->f32_to_fp8_stochastic[LCOMM_E5M2](j->source[0], j->block, j->seed, j->first, out[0], out[1],
                                       j->n);
}
static void run_e4m3_to_f32(const lcomm_kernels *k, const job *j, void *const *out) {
  k->fp8_to_f32[LCOMM_E4M3](j->code, j->scale_byte, j->block, j->factor, out[0], j->n);
}
static void run_e5m2_to_f32(const lcomm_kernels *k, const job *j, void *const *out) {
  k->fp8_to_f32[LCOMM_E5M2](j->code, j->scale_byte, j->block, j->factor, out[0], j->n);
}
static void run_e4m3_add(const lcomm_kernels *k, const job *j, void *const *out) {
  k->fp8_add[LCOMM_E4M3](j->code, j->scale_byte, j->block, j->factor, out[0], j->n);
}
static void run_e5m2_add(const lcomm_kernels *k, const job *j, void *const *out) {
  k->fp8_add[LCOMM_E5M2](j->code, j->scale_byte, j->block, j->factor, out[0], j->n);
}

static const kernel_case cases_fp8_encode[] = {
    {"f32_to_e4m3", run_f32_to_e4m3, {{1, 1}, {1, 1}}, FP8_BLOCKS, false},
    {"f32_to_e5m2", run_f32_to_e5m2, {{1, 1}, {1, 1}}, FP8_BLOCKS, false},
};
static const kernel_case cases_fp8_stochastic[] = {
    {"f32_to_e4m3_stochastic", run_e4m3_stochastic, {{1, 1}, {1, 1}}, FP8_BLOCKS, false},
    {"f32_to_e5m2_stochastic", run_e5m2_stochastic, {{1, 1}, {1, 1}}, FP8_BLOCKS, false},
};
static const kernel_case cases_fp8_decode[] = {
    {"e4m3_to_f32", run_e4m3_to_f32, {{4, 4}}, FP8_BLOCKS, false},
    {"e5m2_to_f32", run_e5m2_to_f32, {{4, 4}}, FP8_BLOCKS, false},
    {"e4m3_add", run_e4m3_add, {{4, 4}}, FP8_BLOCKS, true},
    {"e5m2_add", run_e5m2_add, {{4, 4}}, FP8_BLOCKS, true},
};

/* sign and int2 */

static void run_f32_to_sign(const lcomm_kernels *k, const job *j, void *const *out) {
  k->f32_to_lowbit[LCOMM_SIGN](j->source[0], j->block, out[0], out[1], j->n);
}
static void run_sign_to_f32(const lcomm_kernels *k, const job *j, void *const *out) {
  k->lowbit_to_f32[LCOMM_SIGN](j->code, j->scale_byte, j->block, j->factor, out[0], j->n);
}
static void run_sign_add(const lcomm_kernels *k, const job *j, void *const *out) {
  k->lowbit_add[LCOMM_SIGN](j->code, j->scale_byte, j->block, j->factor, out[0], j->n);
}
static void run_f32_to_int2(const lcomm_kernels *k, const job *j, void *const *out) {
  k->f32_to_lowbit[LCOMM_INT2](j->source[0], j->block, out[0], out[1], j->n);
}
static void run_int2_to_f32(const lcomm_kernels *k, const job *j, void *const *out) {
  k->lowbit_to_f32[LCOMM_INT2](j->code, j->scale_byte, j->block, j->factor, out[0], j->n);
}
static void run_int2_add(const lcomm_kernels *k, const job *j, void *const *out) {
  k->lowbit_add[LCOMM_INT2](j->code, j->scale_byte, j->block, j->factor, out[0], j->n);
}

static const kernel_case cases_lowbit_encode[] = {
    {"f32_to_sign", run_f32_to_sign, {{1, 1}, {1, 1}}, FP8_BLOCKS, false},
    {"f32_to_int2", run_f32_to_int2, {{1, 1}, {1, 1}}, FP8_BLOCKS, false},
};
static const kernel_case cases_lowbit_decode[] = {
    {"sign_to_f32", run_sign_to_f32, {{4, 4}}, FP8_BLOCKS, false},
    {"int2_to_f32", run_int2_to_f32, {{4, 4}}, FP8_BLOCKS, false},
    {"sign_add", run_sign_add, {{4, 4}}, FP8_BLOCKS, true},
    {"int2_add", run_int2_add, {{4, 4}}, FP8_BLOCKS, true},
};

/* f16 in blocks */

static void run_f32_to_f16_block(const lcomm_kernels *k, const job *j, void *const *out) {
  k->f16_block.f32_to_f16_block(j->source[0], out[0], out[1], j->n);
}
static void run_f16_block_to_f32(const lcomm_kernels *k, const job *j, void *const *out) {
  k->f16_block.f16_block_to_f32(j->half, j->scale_byte, j->factor, out[0], j->n);
}
static void run_f16_block_add(const lcomm_kernels *k, const job *j, void *const *out) {
  k->f16_block.f16_block_add(j->half, j->scale_byte, j->factor, out[0], j->n);
}

static const kernel_case cases_f16_block[] = {
    {"f32_to_f16_block", run_f32_to_f16_block, {{2, 2}, {1, 1}}, WHOLE, false},
    {"f16_block_to_f32", run_f16_block_to_f32, {{4, 4}}, WHOLE, false},
    {"f16_block_add", run_f16_block_add, {{4, 4}}, WHOLE, true},
};

/* Arithmetic and error feedback */

static void run_scale(const lcomm_kernels *k, const job *j, void *const *out) {
  k->f32_scale(j->source[0], j->factor, out[0], j->n);
}
static void run_scale_in_place(const lcomm_kernels *k, const job *j, void *const *out) {
  k->f32_scale(out[0], j->factor, out[0], j->n);
}
static void run_add(const lcomm_kernels *k, const job *j, void *const *out) {
  k->f32_add(j->source[0], j->factor, out[0], j->n);
}
static void run_sum1(const lcomm_kernels *k, const job *j, void *const *out) {
  k->f32_sum(j->source, 1, out[0], j->n);
}
static void run_sum3(const lcomm_kernels *k, const job *j, void *const *out) {
  k->f32_sum(j->source, 3, out[0], j->n);
}
static void run_sum_in_place(const lcomm_kernels *k, const job *j, void *const *out) {
  const float *const sources[] = {j->source[0], j->source[1], out[0], j->source[2]};
  k->f32_sum(sources, 4, out[0], j->n);
}
static void run_count(const lcomm_kernels *k, const job *j, void *const *out) {
  uint64_t count = k->f32_count_not_finite(j->source[0], j->n);
  memcpy(out[0], &count, sizeof count);
}
static void run_keep_error(const lcomm_kernels *k, const job *j, void *const *out) {
  k->ef.f32_keep_error(j->source[0], out[0], j->n);
}
static void run_add_error(const lcomm_kernels *k, const job *j, void *const *out) {
  k->ef.f32_add_error(j->source[0], j->source[1], j->factor, out[0], j->n);
}
static void run_momentum(const lcomm_kernels *k, const job *j, void *const *out) {
  k->ef.f32_momentum(j->factor, out[0], out[0], out[1], j->n);
}

static void run_momentum_of(const lcomm_kernels *k, const job *j, void *const *out) {
  k->ef.f32_momentum(j->factor, j->source[0], out[0], out[1], j->n);
}

static const kernel_case cases_arithmetic[] = {
    {"f32_scale", run_scale, {{4, 4}}, WHOLE, false},
    {"f32_scale in place", run_scale_in_place, {{4, 4}}, WHOLE, false},
    {"f32_add", run_add, {{4, 4}}, WHOLE, true},
    {"f32_sum of one", run_sum1, {{4, 4}}, WHOLE, false},
    {"f32_sum of three", run_sum3, {{4, 4}}, WHOLE, true},
    {"f32_sum in place", run_sum_in_place, {{4, 4}}, WHOLE, true},
    {"f32_count_not_finite", run_count, {{1, 8}}, WHOLE, false},
};
static const kernel_case cases_feedback[] = {
    {"f32_keep_error", run_keep_error, {{4, 4}}, WHOLE, false},
    {"f32_add_error", run_add_error, {{4, 4}}, WHOLE, false},
    {"f32_momentum", run_momentum, {{4, 4}, {4, 4}}, WHOLE, true},
    {"f32_momentum of another array", run_momentum_of, {{4, 4}, {4, 4}}, WHOLE, true},
};

/* Selection: what follows the indices may be overwritten, and a sum of NaNs
 * may be any quiet NaN, so no threshold is among those. */

static void run_select_of(const lcomm_kernels *k, const job *j, float *residual, uint32_t *index,
                          void *count) {
  bool quiet_nan = j->threshold > LCOMM_F32_NAN_BITS && j->threshold <= 0x7fffffffu;
  uint32_t threshold = residual != NULL && quiet_nan ? LCOMM_F32_NAN_BITS : j->threshold;
  uint64_t found = k->ef.accumulate_select(j->source[0], residual, residual, j->n, threshold,
                                           (uint32_t)j->first, index, j->capacity);
  memcpy(count, &found, sizeof found);
  for (size_t i = (size_t)found; i < j->capacity; i++) {
    index[i] = 0;
  }
}
static void run_select(const lcomm_kernels *k, const job *j, void *const *out) {
  run_select_of(k, j, NULL, out[1], out[2]);
}
static void run_accumulate_select(const lcomm_kernels *k, const job *j, void *const *out) {
  run_select_of(k, j, out[0], out[1], out[2]);
}

static void run_accumulate_select_of(const lcomm_kernels *k, const job *j, void *const *out) {
  uint32_t none = 0xffffffffu; /* no magnitude reaches it */
  uint64_t found = k->ef.accumulate_select(j->source[0], j->source[1], out[0], j->n, none, 0,
                                           out[1], j->capacity);
  memset(out[1], 0, j->capacity * sizeof(uint32_t));
  memcpy(out[2], &found, sizeof found);
}

static const kernel_case cases_select[] = {
    {"select", run_select, {{4, 4}, {4, 4}, {1, 8}}, WHOLE, false},
    {"accumulate_select", run_accumulate_select, {{4, 4}, {4, 4}, {1, 8}}, WHOLE, true},
    {"accumulate of another array",
     run_accumulate_select_of,
     {{4, 4}, {4, 4}, {1, 8}},
     WHOLE,
     true},
};

/* Planes */

static void run_split2(const lcomm_kernels *k, const job *j, void *const *out) {
  uint8_t *const plane[2] = {out[0], out[1]};
  k->planes.split2(j->code, plane, j->n);
}
static void run_split4(const lcomm_kernels *k, const job *j, void *const *out) {
  uint8_t *const plane[4] = {out[0], out[1], out[2], out[3]};
  k->planes.split4(j->code, plane, j->n);
}
static void run_join2(const lcomm_kernels *k, const job *j, void *const *out) {
  const uint8_t *const plane[2] = {j->code, j->code + j->n};
  k->planes.join2(plane, out[0], j->n);
}
static void run_join4(const lcomm_kernels *k, const job *j, void *const *out) {
  const uint8_t *c = j->code, *const plane[4] = {c, c + j->n, c + 2 * j->n, c + 3 * j->n};
  k->planes.join4(plane, out[0], j->n);
}

static const kernel_case cases_planes[] = {
    {"split2", run_split2, {{1, 1}, {1, 1}}, WHOLE, false},
    {"split4", run_split4, {{1, 1}, {1, 1}, {1, 1}, {1, 1}}, WHOLE, false},
    {"join2", run_join2, {{2, 1}}, WHOLE, false},
    {"join4", run_join4, {{4, 1}}, WHOLE, false},
};

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_precision.h"

#include <string.h>

#include "trainer/train_name.h"

static const char *const names[] = {
    [PRECISION_FP32] = "fp32", [PRECISION_BF16] = "bf16", [PRECISION_FP16] = "fp16"};

const char *precision_name(precision_kind kind) {
  return names[kind];
}

precision_kind precision_find(const char *name) {
  return (precision_kind)name_find(names, PRECISION_COUNT, name);
}

lcomm_dtype precision_dtype(precision_kind kind) {
  static const lcomm_dtype types[] = {[PRECISION_FP32] = LCOMM_FLOAT32,
                                      [PRECISION_BF16] = LCOMM_BFLOAT16,
                                      [PRECISION_FP16] = LCOMM_FLOAT16};
  return types[kind];
}

size_t precision_size(precision_kind kind) {
  return kind == PRECISION_FP32 ? sizeof(float) : sizeof(uint16_t);
}

/* ------------------------------------------------------------- single values */

static inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

enum { BF16_DROPPED = 16, FP16_DROPPED = 13 }; /* bits of a float's significand */
#define SIGN 0x80000000u
#define INFINITE 0x7f800000u

/* To the nearest float whose last `dropped` bits are 0, ties to even. */
static inline uint32_t drop_bits(uint32_t magnitude, int dropped) {
  uint32_t odd = magnitude >> dropped & 1u, half = (1u << (dropped - 1)) - 1u;
  return (magnitude + half + odd) & ~((1u << dropped) - 1u);
}

/* A NaN keeps its upper half, and a bit that makes it quiet. */
static inline float round_bf16(float value) {
  uint32_t bits = bits_of(value), magnitude = bits & ~SIGN;
  uint32_t quiet = (bits | 0x00400000u) & 0xffff0000u;
  uint32_t rounded = drop_bits(magnitude, BF16_DROPPED) | (bits & SIGN);
  return float_of(magnitude > INFINITE ? quiet : rounded);
}

/* Below 2^-14 values of fp16 are 2^-24 apart, as floats between 0.5 and 1 are. From 65520 on the
 * nearest one is infinite. */
static inline float round_fp16(float value) {
  uint32_t bits = bits_of(value), magnitude = bits & ~SIGN;
  uint32_t coarse = drop_bits(magnitude, FP16_DROPPED);
  coarse = coarse >= 0x47800000u ? INFINITE : coarse;
  uint32_t fine = bits_of((float_of(magnitude) + 0.5f) - 0.5f);
  uint32_t rounded = magnitude < 0x38800000u ? fine : coarse;
  return float_of((magnitude > INFINITE ? 0x7fc00000u : rounded) | (bits & SIGN));
}

/* Of a value that is one of fp16. What is below 2^-14 has no exponent: its code is how many 2^-24
 * it is. */
static inline uint16_t code_of_fp16(float value) {
  uint32_t bits = bits_of(value), magnitude = bits & ~SIGN;
  uint32_t normal = (magnitude - 0x38000000u) >> FP16_DROPPED;
  uint32_t small =
      (uint32_t)(int32_t)(float_of(magnitude < 0x38800000u ? magnitude : 0u) * 0x1p24f);
  uint32_t code = magnitude < 0x38800000u ? small : normal;
  code = magnitude == INFINITE ? 0x7c00u : code;
  code = magnitude > INFINITE ? 0x7e00u : code;
  return (uint16_t)(code | (bits & SIGN) >> 16);
}

/* The product gives exponents of a float, and makes what had none normal. */
static inline float value_of_fp16(uint16_t code) {
  uint32_t magnitude = (uint32_t)(code & 0x7fff) << FP16_DROPPED;
  uint32_t finite = bits_of(float_of(magnitude) * 0x1p112f);
  uint32_t special = magnitude | INFINITE;
  return float_of(((code & 0x7c00) == 0x7c00 ? special : finite) | (uint32_t)(code & 0x8000) << 16);
}

/* ------------------------------------------------------------------- vectors */

void precision_round(precision_kind kind, float *values, size_t count) {
  if (kind == PRECISION_BF16) {
    for (size_t i = 0; i < count; i++) {
      values[i] = round_bf16(values[i]);
    }
  } else if (kind == PRECISION_FP16) {
    for (size_t i = 0; i < count; i++) {
      values[i] = round_fp16(values[i]);
    }
  }
}

void precision_encode(precision_kind kind, const float *restrict values, float factor,
                      uint16_t *restrict codes, size_t count) {
  if (kind == PRECISION_BF16) {
    for (size_t i = 0; i < count; i++) {
      codes[i] = (uint16_t)(bits_of(round_bf16(factor * values[i])) >> 16);
    }
    return;
  }
  for (size_t i = 0; i < count; i++) {
    codes[i] = code_of_fp16(round_fp16(factor * values[i]));
  }
}

void precision_decode(precision_kind kind, const uint16_t *restrict codes, float factor,
                      float *restrict values, size_t count) {
  if (kind == PRECISION_BF16) {
    for (size_t i = 0; i < count; i++) {
      values[i] = factor * float_of((uint32_t)codes[i] << 16);
    }
    return;
  }
  for (size_t i = 0; i < count; i++) {
    values[i] = factor * value_of_fp16(codes[i]);
  }
}

/* -------------------------------------------------------------- loss scaling */

#define FIRST_SCALE 65536.0f
#define LEAST_SCALE 1.0f
#define LARGEST_SCALE 16777216.0f

loss_scale loss_scale_begin(precision_kind kind) {
  bool dynamic = kind == PRECISION_FP16;
  return (loss_scale){.factor = dynamic ? FIRST_SCALE : 1.0f, .dynamic = dynamic};
}

void loss_scale_step(loss_scale *self, bool skipped) {
  if (!self->dynamic) {
    return;
  }
  if (skipped) {
    self->factor *= 0.5f;
    self->good = 0;
  } else if (++self->good == LOSS_SCALE_PATIENCE) {
    self->factor = self->factor < LARGEST_SCALE ? 2.0f * self->factor : LARGEST_SCALE;
    self->good = 0;
  }
}

bool loss_scale_is_exhausted(const loss_scale *self) {
  return self->dynamic && self->factor < LEAST_SCALE;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_KERNEL_VALUES_H
#define LCOMM_TESTS_KERNELS_KERNEL_VALUES_H

/* Kinds of float32 values that kernels meet, or hope never to. */

#include "kernels/kernels.h"
#include "tests/kernels/kernel_samples.h"

typedef enum kind {
  KIND_BITS,     /* any bits */
  KIND_GRADIENT, /* normal, with a scale of its own for every 256 */
  KIND_AWKWARD,  /* NaN, Inf, subnormal and signed zero among them */
  KIND_TIES,     /* at the middle between two codes of some format, or next to it */
  KIND_LIMITS,   /* blocks whose largest magnitude is a limit of a format */
  KINDS
} kind;

static inline float signed_randomly(uint32_t magnitude, uint64_t *random) {
  return lcomm_f32_from_bits(magnitude | (sample_u64(random) & 1 ? 0x80000000u : 0));
}

static inline float gradient_value(size_t i, uint64_t *random) {
  static const float scales[] = {1e-3f, 3e-5f, 0.2f, 1e-7f, 4e-4f, 1e-6f, 0.011f, 30.0f};
  float outlier = sample_u64(random) % 128 == 0 ? 20.0f : 1.0f;
  return sample_normal(random) * outlier * scales[i / 256 % 8];
}

static inline float awkward_value(uint64_t *random) {
  static const uint32_t magnitudes[] = {0,          1,          0x007fffff, 0x00800000,
                                        0x04000000, 0x33000000, 0x387fe000, 0x477fefff,
                                        0x477ff000, 0x7f7fffff, 0x7f7f8000, 0x7f800000,
                                        0x7f800001, 0x7fc00000, 0x7fa12345, 0x7fffffff};
  uint64_t choice = sample_u64(random) % 64;
  if (choice < 16) {
    return signed_randomly(magnitudes[choice], random);
  }
  if (choice < 24) {
    return signed_randomly((uint32_t)sample_u64(random) % 0x00800000u, random);
  }
  return sample_normal(random);
}

/* Exponents near 1, because the other formats have few of them; and integers
 * up to 127 with a half. */
static inline float tie_value(uint64_t *random) {
  static const int cuts[] = {13, 16, 20, 21, 22};
  uint32_t cut = (uint32_t)cuts[sample_u64(random) % 5], any = (uint32_t)(sample_u64(random) >> 20);
  uint32_t next = (uint32_t)(sample_u64(random) % 3) - 1, magnitude;
  if (any % 4 == 0) {
    magnitude = lcomm_f32_bits((float)(any / 4 % 127) + 0.5f);
  } else {
    magnitude = (100 + any % 40) << 23 | (any & 0x7fffffu);
    magnitude = (magnitude >> cut << cut) | 1u << (cut - 1);
  }
  return signed_randomly(any % 16 == 1 ? 0x42fe0000u : magnitude + next, random);
}

static inline void limit_values(float *value, size_t n, uint64_t *random) {
  static const uint32_t limits[] = {0,          1,          0x00400000, 0x00800000,
                                    0x03ffffff, 0x04000000, 0x04000001, 0x3f600000,
                                    0x3f600001, 0x43e00000, 0x43e00001, 0x47600000,
                                    0x477fffff, 0x7f7fffff, 0x7f800000, 0x7fc00001};
  uint32_t limit = limits[sample_u64(random) % 16];
  for (size_t i = 0; i < n; i++) {
    uint32_t less = (uint32_t)(sample_u64(random) >> 16) % 0x02000000u;
    value[i] = signed_randomly(limit > less ? limit - less : 0, random);
  }
  value[sample_u64(random) % n] = signed_randomly(limit, random);
}

static inline void make_values(kind k, float *value, size_t n, uint64_t *random) {
  for (size_t i = 0; i < n; i++) {
    if (k == KIND_BITS) {
      value[i] = sample_bits(random);
    } else if (k == KIND_GRADIENT) {
      value[i] = gradient_value(i, random);
    } else if (k == KIND_AWKWARD) {
      value[i] = awkward_value(random);
    } else if (k == KIND_TIES) {
      value[i] = tie_value(random);
    } else if (i % LCOMM_BLOCK == 0) {
      limit_values(value + i, n - i < LCOMM_BLOCK ? n - i : LCOMM_BLOCK, random);
    }
  }
}

#endif

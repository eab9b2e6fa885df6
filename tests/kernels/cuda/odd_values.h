/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_CUDA_ODD_VALUES_H
#define LCOMM_TESTS_KERNELS_CUDA_ODD_VALUES_H

/* Values and lengths that kernels stumble over. */

#include "tests/kernels/kernel_samples.h"

#include <stdbool.h>

#include "kernels/element.h"
#include "tests/support/emulated/emulated_blocks.h"

/* Usual values, any bits, and often: zeros of both signs, Inf, NaN that is quiet or
 * signals, subnormal numbers, the largest ones. */
static inline float odd_f32(uint64_t *random) {
  static const uint32_t special[] = {0,          1,          0x007fffff, 0x00800000, 0x7f7fffff,
                                     0x7f800000, 0x7f800005, 0x7fc00000, 0x7fc00009, 0x3f800000};
  uint64_t which = sample_u64(random) % 8;
  if (which < 3) {
    return sample_normal(random);
  }
  if (which < 5) {
    return sample_bits(random);
  }
  uint32_t sign = (uint32_t)(sample_u64(random) >> 40) & 0x80000000u;
  return lcomm_f32_from_bits(special[sample_u64(random) % 10] | sign);
}

static inline double odd_f64(uint64_t *random) {
  static const uint64_t special[] = {0,
                                     1,
                                     UINT64_C(0x000fffffffffffff),
                                     UINT64_C(0x7fefffffffffffff),
                                     UINT64_C(0x7ff0000000000000),
                                     UINT64_C(0x7ff0000000000005),
                                     UINT64_C(0x7ff8000000000000),
                                     UINT64_C(0x7ff8000000000009)};
  uint64_t which = sample_u64(random) % 8, drawn = sample_u64(random);
  if (which < 3) {
    return (double)sample_normal(random) / 3;
  }
  if (which < 5) {
    return lcomm_f64_from_bits(drawn);
  }
  return lcomm_f64_from_bits(special[sample_u64(random) % 8] | (drawn & UINT64_C(1) << 63));
}

static inline bool odd_is_nan_f32(float value) {
  return lcomm_f32_magnitude(value) > (int32_t)LCOMM_F32_INF_BITS;
}

static inline bool odd_is_nan_f64(double value) {
  return (lcomm_f64_bits(value) & UINT64_C(0x7fffffffffffffff)) > UINT64_C(0x7ff0000000000000);
}

/* Around units, warps, blocks of threads and tiles. */
static const size_t odd_lengths[] = {0,   1,   2,   3,    4,    5,    7,    8,    31,    63,
                                     127, 128, 129, 1023, 1025, 4095, 4096, 4099, 16391, 20000};

enum { ODD_LENGTHS = sizeof odd_lengths / sizeof odd_lengths[0] };

/* Orders of threads, see lcomm_emulated_order. */
static const uint64_t odd_orders[] = {0, 4711};

enum { ODD_ORDERS = sizeof odd_orders / sizeof odd_orders[0] };

#endif

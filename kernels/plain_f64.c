/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Plain float64: sums, minima and maxima.
 *
 * A minimum is taken in both orders, as each order is one instruction of a plain
 * processor. Both are the same value, unless the two are zeros of both signs:
 * then -0 has all bits of either, and +0 those of both. NaNs are put right
 * last, the first one on top.
 */

#include <stdint.h>
#include <string.h>

typedef double lcomm_value;

static inline uint64_t bits_of(lcomm_value value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline lcomm_value from_bits(uint64_t bits) {
  lcomm_value value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline lcomm_value sum(lcomm_value a, lcomm_value b) {
  return a + b;
}

static inline lcomm_value least(lcomm_value a, lcomm_value b) {
  lcomm_value one = a < b ? a : b, other = b < a ? b : a;
  lcomm_value smaller = from_bits(bits_of(one) | bits_of(other));
  smaller = b != b ? b : smaller;
  return a != a ? a : smaller;
}

static inline lcomm_value greatest(lcomm_value a, lcomm_value b) {
  lcomm_value one = a > b ? a : b, other = b > a ? b : a;
  lcomm_value larger = from_bits(bits_of(one) & bits_of(other));
  larger = b != b ? b : larger;
  return a != a ? a : larger;
}

#include "kernels/plain_body.h"

const lcomm_plain_kernel lcomm_plain_f64[LCOMM_PLAIN_OPS] = {
    [LCOMM_PLAIN_SUM] = sum_all,
    [LCOMM_PLAIN_MIN] = least_of_all,
    [LCOMM_PLAIN_MAX] = greatest_of_all,
};

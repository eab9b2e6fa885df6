/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_PLAIN_BODY_H
#define LCOMM_KERNELS_PLAIN_BODY_H

/* Plain values of many arrays combined into one, written once for all types.
 * A block of the result stays in the first-level cache while all sources are
 * combined with it, three at a time; it is a block apart, because a source may
 * be the destination and because compilers then know that nothing overlaps.
 *
 * The file that includes this defines lcomm_value, the functions of two values
 * sum, least and greatest, and PLAIN_TABLE, the name of the table (plain_types.h).
 */

#include <string.h>

#include "kernels/plain_types.h"

enum { PLAIN_BLOCK = 512 };

typedef lcomm_value combination(lcomm_value, lcomm_value);

#define PLAIN_INLINE static inline __attribute__((always_inline))

PLAIN_INLINE void combine_first(combination *op, const lcomm_value *restrict a,
                                const lcomm_value *restrict b, lcomm_value *restrict result,
                                size_t n) {
  for (size_t i = 0; i < n; i++) {
    result[i] = op(a[i], b[i]);
  }
}

PLAIN_INLINE void combine_one(combination *op, const lcomm_value *restrict a,
                              lcomm_value *restrict result, size_t n) {
  for (size_t i = 0; i < n; i++) {
    result[i] = op(result[i], a[i]);
  }
}

PLAIN_INLINE void combine_three(combination *op, const lcomm_value *restrict a,
                                const lcomm_value *restrict b, const lcomm_value *restrict c,
                                lcomm_value *restrict result, size_t n) {
  for (size_t i = 0; i < n; i++) {
    result[i] = op(op(op(result[i], a[i]), b[i]), c[i]);
  }
}

PLAIN_INLINE const lcomm_value *values_at(const void *source, size_t first) {
  return (const lcomm_value *)source + first;
}

PLAIN_INLINE void combine_block(combination *op, const void *const *sources, size_t count,
                                size_t first, lcomm_value *result, size_t n) {
  size_t s = 2;
  combine_first(op, values_at(sources[0], first), values_at(sources[1], first), result, n);
  for (; s + 3 <= count; s += 3) {
    combine_three(op, values_at(sources[s], first), values_at(sources[s + 1], first),
                  values_at(sources[s + 2], first), result, n);
  }
  for (; s < count; s++) {
    combine_one(op, values_at(sources[s], first), result, n);
  }
}

PLAIN_INLINE void combine(combination *op, const void *const *sources, size_t count,
                          void *destination, size_t n) {
  lcomm_value result[PLAIN_BLOCK];
  if (n == 0) {
    return;
  }
  if (count == 1) {
    memmove(destination, sources[0], n * sizeof(lcomm_value));
    return;
  }
  for (size_t first = 0; first < n; first += PLAIN_BLOCK) {
    size_t length = n - first < PLAIN_BLOCK ? n - first : PLAIN_BLOCK;
    combine_block(op, sources, count, first, result, length);
    memcpy((lcomm_value *)destination + first, result, length * sizeof(lcomm_value));
  }
}

static void sum_all(const void *const *sources, size_t count, void *destination, size_t n) {
  combine(sum, sources, count, destination, n);
}

static void least_of_all(const void *const *sources, size_t count, void *destination, size_t n) {
  combine(least, sources, count, destination, n);
}

static void greatest_of_all(const void *const *sources, size_t count, void *destination, size_t n) {
  combine(greatest, sources, count, destination, n);
}

const lcomm_plain_kernel PLAIN_TABLE[LCOMM_PLAIN_OPS] = {
    [LCOMM_PLAIN_SUM] = sum_all,
    [LCOMM_PLAIN_MIN] = least_of_all,
    [LCOMM_PLAIN_MAX] = greatest_of_all,
};

#endif

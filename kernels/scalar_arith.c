/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Scalar kernels for float32 arithmetic and error feedback. */

#include "kernels/element.h"
#include "kernels/scalar.h"

void lcomm_scalar_f32_scale(const float *source, float factor, float *destination, size_t n) {
  for (size_t i = 0; i < n; i++) {
    destination[i] = factor * source[i];
  }
}

void lcomm_scalar_f32_add(const float *restrict source, float factor, float *restrict destination,
                          size_t n) {
  for (size_t i = 0; i < n; i++) {
    destination[i] += factor * source[i];
  }
}

/* May be called with a source equal to the destination: element i is read
 * before it is written. */
static void add_pair(const float *left, const float *right, float *destination, size_t n) {
  for (size_t i = 0; i < n; i++) {
    destination[i] = left[i] + right[i];
  }
}

/* Elements summed at a time. The partial sum lives on the stack, because a
 * source may be the destination and must stay whole until it was read. */
enum { SUM_CHUNK = 512 };

void lcomm_scalar_f32_sum(const float *const *sources, size_t count, float *destination, size_t n) {
  if (n == 0) {
    return;
  }
  if (count == 1) {
    memmove(destination, sources[0], n * sizeof *destination);
    return;
  }
  float partial[SUM_CHUNK];
  for (size_t first = 0; first < n; first += SUM_CHUNK) {
    size_t length = n - first < SUM_CHUNK ? n - first : SUM_CHUNK;
    const float *left = sources[0] + first;
    for (size_t s = 1; s + 1 < count; s++) {
      add_pair(left, sources[s] + first, partial, length);
      left = partial;
    }
    add_pair(left, sources[count - 1] + first, destination + first, length);
  }
}

/* Counted in 32 bits over pieces, which vectorises better than in 64. */
size_t lcomm_scalar_f32_count_not_finite(const float *source, size_t n) {
  size_t total = 0;
  for (size_t first = 0; first < n; first += SUM_CHUNK) {
    size_t end = n - first < SUM_CHUNK ? n : first + SUM_CHUNK;
    uint32_t count = 0;
    for (size_t i = first; i < end; i++) {
      count += lcomm_f32_magnitude(source[i]) >= (int32_t)LCOMM_F32_INF_BITS;
    }
    total += count;
  }
  return total;
}

void lcomm_scalar_f32_keep_error(const float *restrict decoded, float *restrict residual,
                                 size_t n) {
  for (size_t i = 0; i < n; i++) {
    residual[i] = lcomm_error_kept(residual[i], decoded[i]);
  }
}

void lcomm_scalar_f32_add_error(const float *restrict source, const float *restrict decoded,
                                float weight, float *restrict residual, size_t n) {
  for (size_t i = 0; i < n; i++) {
    float kept = weight * lcomm_error_kept(source[i], decoded[i]);
    residual[i] = lcomm_finite_or_zero(residual[i] + kept);
  }
}

void lcomm_scalar_f32_momentum(float factor, const float *before, float *momentum,
                               float *restrict gradient, size_t n) {
  for (size_t i = 0; i < n; i++) {
    gradient[i] = factor * before[i] + gradient[i];
    momentum[i] = lcomm_finite_or_zero(gradient[i]);
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX-512 kernels for float32 arithmetic and error feedback. They move 8 to 16
 * bytes for each operation: what counts is how they load and store. */

#include "kernels/avx512.h"
#include "kernels/avx512_vector.h"

/* scale and add */

LCOMM_VECTOR void scale(lcomm_path path, const float *source, __m512 factor, float *destination,
                        size_t n) {
  size_t i = 0;
  for (; i + LCOMM_LANES <= n; i += LCOMM_LANES) {
    lcomm_put(path, destination + i, _mm512_mul_ps(factor, _mm512_loadu_ps(source + i)));
  }
  if (i == n) {
    return;
  }
  __mmask16 lanes = lcomm_lanes(n - i);
  __m512 value = _mm512_maskz_loadu_ps(lanes, source + i);
  lcomm_put_lanes(path, destination + i, lanes, _mm512_mul_ps(factor, value));
}

void lcomm_avx512_f32_scale(const float *source, float factor, float *destination, size_t n) {
  __m512 factors = _mm512_set1_ps(factor);
  /* In place the lines have been read already. */
  if (n < LCOMM_STREAM_COUNT || source == destination) {
    scale(LCOMM_CACHED, source, factors, destination, n);
    return;
  }
  size_t head = lcomm_line_head(destination, sizeof *destination, n);
  scale(LCOMM_CACHED, source, factors, destination, head);
  scale(LCOMM_STREAMED, source + head, factors, destination + head, n - head);
  _mm_sfence();
}

void lcomm_avx512_f32_add(const float *source, float factor, float *destination, size_t n) {
  scale(LCOMM_ADDED, source, _mm512_set1_ps(factor), destination, n);
}

/* sum */

enum { SUM_VECTORS = 8 };

/* 128 elements; every source is read before any is written. */
LCOMM_VECTOR void sum_unit(lcomm_path path, const float *const *sources, size_t count, size_t at,
                           float *destination) {
  __m512 sum[SUM_VECTORS];
  for (size_t v = 0; v < SUM_VECTORS; v++) {
    sum[v] = _mm512_loadu_ps(sources[0] + at + v * LCOMM_LANES);
  }
  for (size_t s = 1; s < count; s++) {
    for (size_t v = 0; v < SUM_VECTORS; v++) {
      sum[v] = _mm512_add_ps(sum[v], _mm512_loadu_ps(sources[s] + at + v * LCOMM_LANES));
    }
  }
  for (size_t v = 0; v < SUM_VECTORS; v++) {
    lcomm_put(path, destination + at + v * LCOMM_LANES, sum[v]);
  }
}

LCOMM_VECTOR void sum_lanes(const float *const *sources, size_t count, size_t at,
                            float *destination, __mmask16 lanes) {
  __m512 sum = _mm512_maskz_loadu_ps(lanes, sources[0] + at);
  for (size_t s = 1; s < count; s++) {
    sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(lanes, sources[s] + at));
  }
  _mm512_mask_storeu_ps(destination + at, lanes, sum);
}

/* The elements from `first` to n. */
LCOMM_VECTOR void sum_range(lcomm_path path, const float *const *sources, size_t count,
                            float *destination, size_t first, size_t n) {
  size_t i = first;
  for (; i + SUM_VECTORS * LCOMM_LANES <= n; i += SUM_VECTORS * LCOMM_LANES) {
    sum_unit(path, sources, count, i, destination);
  }
  for (; i < n; i += LCOMM_LANES) {
    sum_lanes(sources, count, i, destination, lcomm_lanes(n - i));
  }
}

void lcomm_avx512_f32_sum(const float *const *sources, size_t count, float *destination, size_t n) {
  bool in_place = false;
  for (size_t s = 0; s < count; s++) {
    in_place |= sources[s] == destination;
  }
  if (n < LCOMM_STREAM_COUNT || in_place) {
    sum_range(LCOMM_CACHED, sources, count, destination, 0, n);
    return;
  }
  size_t head = lcomm_line_head(destination, sizeof *destination, n);
  sum_range(LCOMM_CACHED, sources, count, destination, 0, head);
  sum_range(LCOMM_STREAMED, sources, count, destination, head, n);
  _mm_sfence();
}

size_t lcomm_avx512_f32_count_not_finite(const float *source, size_t n) {
  size_t count = 0, i = 0;
  for (; i + 4 * LCOMM_LANES <= n; i += 4 * LCOMM_LANES) {
    uint64_t bad = 0;
    for (size_t v = 0; v < 4; v++) {
      __m512 value = _mm512_loadu_ps(source + i + v * LCOMM_LANES);
      bad = bad << LCOMM_LANES | _mm512_fpclass_ps_mask(value, LCOMM_NOT_FINITE);
    }
    count += (size_t)__builtin_popcountll(bad);
  }
  for (; i < n; i += LCOMM_LANES) {
    __m512 value = _mm512_maskz_loadu_ps(lcomm_lanes(n - i), source + i);
    count += (size_t)__builtin_popcount(_mm512_fpclass_ps_mask(value, LCOMM_NOT_FINITE));
  }
  return count;
}

/* Error feedback */

void lcomm_avx512_f32_keep_error(const float *decoded, float *residual, size_t n) {
  size_t i = 0;
  for (; i + LCOMM_LANES <= n; i += LCOMM_LANES) {
    __m512 kept =
        lcomm_error_kept_vector(_mm512_loadu_ps(residual + i), _mm512_loadu_ps(decoded + i));
    _mm512_storeu_ps(residual + i, kept);
  }
  __mmask16 lanes = lcomm_lanes(n - i);
  __m512 kept = lcomm_error_kept_vector(_mm512_maskz_loadu_ps(lanes, residual + i),
                                        _mm512_maskz_loadu_ps(lanes, decoded + i));
  _mm512_mask_storeu_ps(residual + i, lanes, kept);
}

void lcomm_avx512_f32_add_error(const float *source, const float *decoded, float weight,
                                float *residual, size_t n) {
  __m512 weights = _mm512_set1_ps(weight);
  size_t i = 0;
  for (; i + LCOMM_LANES <= n; i += LCOMM_LANES) {
    __m512 kept =
        lcomm_error_kept_vector(_mm512_loadu_ps(source + i), _mm512_loadu_ps(decoded + i));
    __m512 sum = _mm512_add_ps(_mm512_loadu_ps(residual + i), _mm512_mul_ps(weights, kept));
    _mm512_storeu_ps(residual + i, lcomm_finite_or_zero_vector(sum));
  }
  __mmask16 lanes = lcomm_lanes(n - i);
  __m512 kept = lcomm_error_kept_vector(_mm512_maskz_loadu_ps(lanes, source + i),
                                        _mm512_maskz_loadu_ps(lanes, decoded + i));
  __m512 sum =
      _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, residual + i), _mm512_mul_ps(weights, kept));
  _mm512_mask_storeu_ps(residual + i, lanes, lcomm_finite_or_zero_vector(sum));
}

void lcomm_avx512_f32_momentum(float factor, const float *before, float *momentum, float *gradient,
                               size_t n) {
  __m512 factors = _mm512_set1_ps(factor);
  size_t i = 0;
  for (; i + LCOMM_LANES <= n; i += LCOMM_LANES) {
    __m512 moved = _mm512_mul_ps(factors, _mm512_loadu_ps(before + i));
    __m512 sum = _mm512_add_ps(moved, _mm512_loadu_ps(gradient + i));
    _mm512_storeu_ps(gradient + i, sum);
    _mm512_storeu_ps(momentum + i, lcomm_finite_or_zero_vector(sum));
  }
  __mmask16 lanes = lcomm_lanes(n - i);
  __m512 moved = _mm512_mul_ps(factors, _mm512_maskz_loadu_ps(lanes, before + i));
  __m512 sum = _mm512_add_ps(moved, _mm512_maskz_loadu_ps(lanes, gradient + i));
  _mm512_mask_storeu_ps(gradient + i, lanes, sum);
  _mm512_mask_storeu_ps(momentum + i, lanes, lcomm_finite_or_zero_vector(sum));
}

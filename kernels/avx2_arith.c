/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX2 kernels for float32 arithmetic and error feedback. */

#include "kernels/avx2.h"
#include "kernels/avx2_vector.h"

enum { STEP = LCOMM_AVX2_STEP, LANES = LCOMM_AVX2_LANES, STEP_BYTES = STEP * sizeof(float) };

LCOMM_AVX2_INLINE size_t whole_steps(size_t n) {
  return n - n % STEP;
}

LCOMM_AVX2_INLINE void scale_steps(lcomm_avx2_way way, const float *source, float factor,
                                   float *destination, size_t n) {
  __m256 factors = _mm256_set1_ps(factor);
  for (size_t i = 0; i < n; i += STEP) {
    lcomm_avx2_prefetch(source + i, STEP_BYTES);
    for (size_t v = i; v < i + STEP; v += LANES) {
      lcomm_avx2_put_f32(way, destination + v, _mm256_mul_ps(factors, _mm256_loadu_ps(source + v)));
    }
  }
}

static void scale_few(const float *source, float factor, float *destination, size_t first,
                      size_t end) {
  for (size_t i = first; i < end; i++) {
    destination[i] = factor * source[i];
  }
}

void lcomm_avx2_f32_scale(const float *source, float factor, float *destination, size_t n) {
  lcomm_avx2_span span = lcomm_avx2_cut(destination, sizeof *destination, n);
  if (source == destination) {
    span = lcomm_avx2_stored(n);
  }
  scale_few(source, factor, destination, 0, span.head);
  if (span.way == LCOMM_AVX2_STREAM) {
    scale_steps(LCOMM_AVX2_STREAM, source + span.head, factor, destination + span.head, span.body);
    lcomm_avx2_streamed();
  } else {
    scale_steps(LCOMM_AVX2_STORE, source, factor, destination, span.body);
  }
  scale_few(source, factor, destination, span.head + span.body, n);
}

void lcomm_avx2_f32_add(const float *source, float factor, float *destination, size_t n) {
  __m256 factors = _mm256_set1_ps(factor);
  size_t body = whole_steps(n);
  for (size_t i = 0; i < body; i += STEP) {
    lcomm_avx2_prefetch(source + i, STEP_BYTES);
    lcomm_avx2_prefetch(destination + i, STEP_BYTES);
    for (size_t v = i; v < i + STEP; v += LANES) {
      __m256 value = _mm256_mul_ps(factors, _mm256_loadu_ps(source + v));
      lcomm_avx2_put_f32(LCOMM_AVX2_ADD, destination + v, value);
    }
  }
  for (size_t i = body; i < n; i++) {
    destination[i] += factor * source[i];
  }
}

/* One step of all sources is summed in registers. */
LCOMM_AVX2_INLINE void sum_steps(lcomm_avx2_way way, const float *const *sources, size_t count,
                                 float *destination, size_t first, size_t end) {
  for (size_t i = first; i < end; i += STEP) {
    __m256 sum[STEP / LANES];
    lcomm_avx2_prefetch(sources[0] + i, STEP_BYTES);
    for (size_t v = 0; v < STEP / LANES; v++) {
      sum[v] = _mm256_loadu_ps(sources[0] + i + v * LANES);
    }
    for (size_t s = 1; s < count; s++) {
      lcomm_avx2_prefetch(sources[s] + i, STEP_BYTES);
      for (size_t v = 0; v < STEP / LANES; v++) {
        sum[v] = _mm256_add_ps(sum[v], _mm256_loadu_ps(sources[s] + i + v * LANES));
      }
    }
    for (size_t v = 0; v < STEP / LANES; v++) {
      lcomm_avx2_put_f32(way, destination + i + v * LANES, sum[v]);
    }
  }
}

static void sum_few(const float *const *sources, size_t count, float *destination, size_t first,
                    size_t end) {
  for (size_t i = first; i < end; i++) {
    float sum = sources[0][i];
    for (size_t s = 1; s < count; s++) {
      sum += sources[s][i];
    }
    destination[i] = sum;
  }
}

void lcomm_avx2_f32_sum(const float *const *sources, size_t count, float *destination, size_t n) {
  lcomm_avx2_span span = lcomm_avx2_cut(destination, sizeof *destination, n);
  for (size_t s = 0; s < count; s++) {
    if (sources[s] == destination) {
      span = lcomm_avx2_stored(n);
    }
  }
  size_t end = span.head + span.body;
  sum_few(sources, count, destination, 0, span.head);
  if (span.way == LCOMM_AVX2_STREAM) {
    sum_steps(LCOMM_AVX2_STREAM, sources, count, destination, span.head, end);
    lcomm_avx2_streamed();
  } else {
    sum_steps(LCOMM_AVX2_STORE, sources, count, destination, span.head, end);
  }
  sum_few(sources, count, destination, end, n);
}

/* In pieces that cannot overflow the 32 bits of a lane. */
enum { COUNT_PIECE = 1 << 20 };

static size_t count_piece(const float *source, size_t n) {
  __m256i count = _mm256_setzero_si256();
  int32_t lane[LANES];
  for (size_t i = 0; i < n; i += STEP) {
    lcomm_avx2_prefetch(source + i, STEP_BYTES);
    for (size_t v = i; v < i + STEP; v += LANES) {
      count = _mm256_sub_epi32(count, lcomm_avx2_finite(_mm256_loadu_ps(source + v)));
    }
  }
  _mm256_storeu_si256((__m256i *)lane, count);
  size_t total = 0;
  for (int v = 0; v < LANES; v++) {
    total += (size_t)lane[v];
  }
  return n - total;
}

size_t lcomm_avx2_f32_count_not_finite(const float *source, size_t n) {
  size_t body = whole_steps(n), total = 0;
  for (size_t first = 0; first < body; first += COUNT_PIECE) {
    total += count_piece(source + first, body - first < COUNT_PIECE ? body - first : COUNT_PIECE);
  }
  for (size_t i = body; i < n; i++) {
    total += !lcomm_f32_is_finite(source[i]);
  }
  return total;
}

void lcomm_avx2_f32_keep_error(const float *decoded, float *residual, size_t n) {
  size_t body = whole_steps(n);
  for (size_t i = 0; i < body; i += STEP) {
    lcomm_avx2_prefetch(decoded + i, STEP_BYTES);
    lcomm_avx2_prefetch(residual + i, STEP_BYTES);
    for (size_t v = i; v < i + STEP; v += LANES) {
      __m256 value = _mm256_loadu_ps(residual + v);
      _mm256_storeu_ps(residual + v, lcomm_avx2_error_kept(value, _mm256_loadu_ps(decoded + v)));
    }
  }
  for (size_t i = body; i < n; i++) {
    residual[i] = lcomm_error_kept(residual[i], decoded[i]);
  }
}

void lcomm_avx2_f32_add_error(const float *source, const float *decoded, float weight,
                              float *residual, size_t n) {
  __m256 weights = _mm256_set1_ps(weight);
  size_t body = whole_steps(n);
  for (size_t i = 0; i < body; i += STEP) {
    lcomm_avx2_prefetch(source + i, STEP_BYTES);
    lcomm_avx2_prefetch(decoded + i, STEP_BYTES);
    lcomm_avx2_prefetch(residual + i, STEP_BYTES);
    for (size_t v = i; v < i + STEP; v += LANES) {
      __m256 kept =
          lcomm_avx2_error_kept(_mm256_loadu_ps(source + v), _mm256_loadu_ps(decoded + v));
      __m256 more = _mm256_mul_ps(weights, kept);
      __m256 value = _mm256_add_ps(_mm256_loadu_ps(residual + v), more);
      _mm256_storeu_ps(residual + v, lcomm_avx2_finite_or_zero(value));
    }
  }
  for (size_t i = body; i < n; i++) {
    float more = weight * lcomm_error_kept(source[i], decoded[i]);
    residual[i] = lcomm_finite_or_zero(residual[i] + more);
  }
}

void lcomm_avx2_f32_momentum(float factor, const float *before, float *momentum, float *gradient,
                             size_t n) {
  __m256 factors = _mm256_set1_ps(factor);
  size_t body = whole_steps(n);
  for (size_t i = 0; i < body; i += STEP) {
    lcomm_avx2_prefetch(before + i, STEP_BYTES);
    lcomm_avx2_prefetch(gradient + i, STEP_BYTES);
    for (size_t v = i; v < i + STEP; v += LANES) {
      __m256 value = _mm256_mul_ps(factors, _mm256_loadu_ps(before + v));
      value = _mm256_add_ps(value, _mm256_loadu_ps(gradient + v));
      _mm256_storeu_ps(gradient + v, value);
      _mm256_storeu_ps(momentum + v, lcomm_avx2_finite_or_zero(value));
    }
  }
  for (size_t i = body; i < n; i++) {
    gradient[i] = factor * before[i] + gradient[i];
    momentum[i] = lcomm_finite_or_zero(gradient[i]);
  }
}

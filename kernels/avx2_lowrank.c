/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX2 kernels for matrices of low rank: the vectors that lowrank_body.h and
 * lowrank_back_body.h work with. */

#include "kernels/avx2.h"
#include "kernels/avx2_vector.h"

typedef __m256 lcomm_vector;

enum { WIDTH = LCOMM_AVX2_LANES };

LCOMM_AVX2_INLINE lcomm_vector plain(const float *values) {
  return _mm256_loadu_ps(values);
}

LCOMM_AVX2_INLINE lcomm_vector add(lcomm_vector a, lcomm_vector b) {
  return _mm256_add_ps(a, b);
}

LCOMM_AVX2_INLINE lcomm_vector multiply(lcomm_vector a, lcomm_vector b) {
  return _mm256_mul_ps(a, b);
}

LCOMM_AVX2_INLINE lcomm_vector broadcast(float value) {
  return _mm256_set1_ps(value);
}

LCOMM_AVX2_INLINE void put(float *destination, lcomm_vector values) {
  _mm256_storeu_ps(destination, values);
}

LCOMM_AVX2_INLINE void stream(float *destination, lcomm_vector values) {
  _mm256_stream_ps(destination, values);
}

LCOMM_AVX2_INLINE lcomm_vector kept(lcomm_vector value, lcomm_vector decoded) {
  return lcomm_avx2_error_kept(value, decoded);
}

#include "kernels/lowrank_back_body.h"
#include "kernels/lowrank_body.h"

void lcomm_avx2_lowrank_project(float *p, float *m, const float *gradient, const float *q,
                                size_t rows, size_t columns, size_t rank) {
  project(p, m, gradient, q, rows, columns, rank);
}

void lcomm_avx2_lowrank_project_back(float *q, const float *m, const float *p, size_t rows,
                                     size_t columns, size_t rank) {
  project_back(q, m, p, rows, columns, rank);
}

void lcomm_avx2_lowrank_expand(float *result, float *m, const float *p, const float *q, size_t rows,
                               size_t columns, size_t rank, float share) {
  lowrank_expansion e = {result, m, p, q, rows, columns, rank, share};
  expand(&e);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Scalar kernels for matrices of low rank. A row is read `rank` times, from a cache. */

#include "kernels/element.h"
#include "kernels/scalar.h"

enum { SUMS = LCOMM_LOWRANK_SUMS, ROWS = LCOMM_LOWRANK_ROWS, PANEL = 256 };

/* project */

static float dot(const float *restrict left, const float *restrict right, size_t n) {
  float sum[SUMS] = {0};
  size_t i = 0;
  for (; i + SUMS <= n; i += SUMS) {
    for (size_t s = 0; s < SUMS; s++) {
      sum[s] += left[i + s] * right[i + s];
    }
  }
  for (size_t s = 0; i + s < n; s++) {
    sum[s] += left[i + s] * right[i + s];
  }
  for (size_t width = SUMS / 2; width > 0; width /= 2) {
    for (size_t s = 0; s < width; s++) {
      sum[s] += sum[s + width];
    }
  }
  return sum[0];
}

static void add(float *restrict m, const float *restrict gradient, size_t n) {
  for (size_t i = 0; i < n; i++) {
    m[i] += gradient[i];
  }
}

void lcomm_scalar_lowrank_project(float *p, float *m, const float *gradient, const float *q,
                                  size_t rows, size_t columns, size_t rank) {
  for (size_t i = 0; i < rows; i++) {
    float *row = m + i * columns;
    if (gradient) {
      add(row, gradient + i * columns, columns);
    }
    for (size_t k = 0; k < rank; k++) {
      p[k * rows + i] = dot(row, q + k * columns, columns);
    }
  }
}

/* project_back */

/* q += a sum from 0 of `height` rows, for n <= PANEL columns of one vector */
static void add_rows(float *restrict q, const float *restrict m, const float *restrict p,
                     size_t height, size_t columns, size_t n) {
  float sum[PANEL] = {0};
  for (size_t i = 0; i < height; i++) {
    for (size_t j = 0; j < n; j++) {
      sum[j] += m[i * columns + j] * p[i];
    }
  }
  for (size_t j = 0; j < n; j++) {
    q[j] += sum[j];
  }
}

void lcomm_scalar_lowrank_project_back(float *q, const float *m, const float *p, size_t rows,
                                       size_t columns, size_t rank) {
  for (size_t j = 0; j < rank * columns; j++) {
    q[j] = 0.0f;
  }
  for (size_t i = 0; i < rows; i += ROWS) {
    size_t height = rows - i < ROWS ? rows - i : ROWS;
    for (size_t j = 0; j < columns; j += PANEL) {
      size_t n = columns - j < PANEL ? columns - j : PANEL;
      for (size_t k = 0; k < rank; k++) {
        add_rows(q + k * columns + j, m + i * columns + j, p + k * rows + i, height, columns, n);
      }
    }
  }
}

/* expand */

static void scale(float *restrict result, const float *restrict q, float factor, size_t n) {
  for (size_t j = 0; j < n; j++) {
    result[j] = q[j] * factor;
  }
}

static void add_scaled(float *restrict result, const float *restrict q, float factor, size_t n) {
  for (size_t j = 0; j < n; j++) {
    result[j] += q[j] * factor;
  }
}

static void keep(float *restrict m, const float *restrict result, float share, size_t n) {
  for (size_t j = 0; j < n; j++) {
    m[j] = lcomm_error_kept(m[j], share * result[j]);
  }
}

void lcomm_scalar_lowrank_expand(float *result, float *m, const float *p, const float *q,
                                 size_t rows, size_t columns, size_t rank, float share) {
  for (size_t i = 0; i < rows; i++) {
    float *row = result + i * columns;
    scale(row, q, p[i], columns);
    for (size_t k = 1; k < rank; k++) {
      add_scaled(row, q + k * columns, p[k * rows + i], columns);
    }
    keep(m + i * columns, row, share, columns);
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_LOWRANK_BODY_H
#define LCOMM_KERNELS_LOWRANK_BODY_H

/* Matrices of low rank, written once for vectors of any width: project and expand. M is read once
 * where rank is at most RANKS: project multiplies it by so many vectors of Q at a time.
 *
 * The file that includes this defines lcomm_vector, WIDTH (its elements) and the functions on
 * vectors: plain, add, multiply, broadcast, put, stream and kept (lcomm_error_kept).
 */

#include <immintrin.h>

#include "kernels/element.h"
#include "kernels/kernels.h"

enum {
  RANKS = 4,
  SUMS = LCOMM_LOWRANK_SUMS,
  SUM_VECTORS = SUMS / WIDTH,
  EXPANDED_VECTORS = 4, /* of expand */
  AHEAD = 2048,         /* bytes from a read to its prefetch */
  LINE = 64
};

#define LOWRANK_INLINE static inline __attribute__((always_inline))

LOWRANK_INLINE size_t at_most(size_t n, size_t most) {
  return n < most ? n : most;
}

LOWRANK_INLINE void ask(const float *values, size_t ahead, size_t size) {
  for (size_t line = 0; line < size; line += LINE) {
    _mm_prefetch((const char *)((uintptr_t)values + ahead + line), _MM_HINT_T0);
  }
}

/* project: `ranks` and `adds` are constants wherever they are used. */

typedef struct lowrank_row {
  float *m;
  const float *gradient, *q;
  size_t columns; /* from one vector of Q to the next */
} lowrank_row;

LOWRANK_INLINE void add_products(size_t ranks, bool adds, lowrank_row row, size_t j,
                                 lcomm_vector sum[RANKS][SUM_VECTORS]) {
  for (size_t v = 0; v < SUM_VECTORS; v++, j += WIDTH) {
    lcomm_vector value = plain(row.m + j);
    if (adds) {
      value = add(value, plain(row.gradient + j));
      put(row.m + j, value);
    }
    for (size_t k = 0; k < ranks; k++) {
      lcomm_vector product = multiply(value, plain(row.q + k * row.columns + j));
      sum[k][v] = add(sum[k][v], product);
    }
  }
}

/* The last columns, fewer than SUMS, with zeros behind them: a sum from 0 stays what it is when 0
 * is added. */
LOWRANK_INLINE void add_rest(size_t ranks, bool adds, lowrank_row row, size_t first,
                             lcomm_vector sum[RANKS][SUM_VECTORS]) {
  float m[SUMS] = {0}, q[RANKS * SUMS] = {0};
  for (size_t j = first; j < row.columns; j++) {
    if (adds) {
      row.m[j] += row.gradient[j];
    }
    m[j - first] = row.m[j];
    for (size_t k = 0; k < ranks; k++) {
      q[k * SUMS + j - first] = row.q[k * row.columns + j];
    }
  }
  lowrank_row rest = {m, NULL, q, SUMS};
  add_products(ranks, false, rest, 0, sum);
}

LOWRANK_INLINE float total(const lcomm_vector sum[SUM_VECTORS]) {
  float value[SUMS];
  for (size_t v = 0; v < SUM_VECTORS; v++) {
    put(value + v * WIDTH, sum[v]);
  }
  for (size_t width = SUMS / 2; width > 0; width /= 2) {
    for (size_t s = 0; s < width; s++) {
      value[s] += value[s + width];
    }
  }
  return value[0];
}

/* p[k * rows] for k < ranks */
LOWRANK_INLINE void project_row(size_t ranks, bool adds, lowrank_row row, float *p, size_t rows) {
  lcomm_vector sum[RANKS][SUM_VECTORS];
  for (size_t k = 0; k < ranks; k++) {
    for (size_t v = 0; v < SUM_VECTORS; v++) {
      sum[k][v] = broadcast(0.0f);
    }
  }
  size_t whole = row.columns - row.columns % SUMS;
  for (size_t j = 0; j < whole; j += SUMS) {
    ask(row.m + j, AHEAD, LINE);
    if (adds) {
      ask(row.gradient + j, AHEAD, LINE);
    }
    add_products(ranks, adds, row, j, sum);
  }
  if (whole < row.columns) {
    add_rest(ranks, adds, row, whole, sum);
  }
  for (size_t k = 0; k < ranks; k++) {
    p[k * rows] = total(sum[k]);
  }
}

LOWRANK_INLINE void project_some(size_t ranks, bool adds, lowrank_row row, float *p, size_t rows) {
  switch (ranks) {
  case 1:
    project_row(1, adds, row, p, rows);
    break;
  case 2:
    project_row(2, adds, row, p, rows);
    break;
  case 3:
    project_row(3, adds, row, p, rows);
    break;
  default:
    project_row(RANKS, adds, row, p, rows);
    break;
  }
}

static void project(float *p, float *m, const float *gradient, const float *q, size_t rows,
                    size_t columns, size_t rank) {
  for (size_t i = 0; i < rows; i++) {
    lowrank_row row = {m + i * columns, NULL, q, columns};
    size_t k = 0;
    if (gradient) {
      row.gradient = gradient + i * columns;
      project_some(at_most(rank, RANKS), true, row, p + i, rows);
      k = at_most(rank, RANKS);
    }
    for (; k < rank; k += RANKS) {
      row.q = q + k * columns;
      project_some(at_most(rank - k, RANKS), false, row, p + k * rows + i, rows);
    }
  }
}

/* expand: `vectors` and `streams` are constants wherever they are used. */

typedef struct lowrank_expansion {
  float *result, *m;
  const float *p, *q;
  size_t rows, columns, rank;
  float share;
} lowrank_expansion;

LOWRANK_INLINE void expand_columns(size_t vectors, bool streams, const lowrank_expansion *e,
                                   size_t i, size_t j) {
  lcomm_vector sum[EXPANDED_VECTORS], factor = broadcast(e->p[i]), share = broadcast(e->share);
  for (size_t v = 0; v < vectors; v++) {
    sum[v] = multiply(plain(e->q + j + v * WIDTH), factor);
  }
  for (size_t k = 1; k < e->rank; k++) {
    factor = broadcast(e->p[k * e->rows + i]);
    for (size_t v = 0; v < vectors; v++) {
      sum[v] = add(sum[v], multiply(plain(e->q + k * e->columns + j + v * WIDTH), factor));
    }
  }
  for (size_t v = 0; v < vectors; v++) {
    size_t at = i * e->columns + j + v * WIDTH;
    if (streams) {
      stream(e->result + at, sum[v]);
    } else {
      put(e->result + at, sum[v]);
    }
    put(e->m + at, kept(plain(e->m + at), multiply(share, sum[v])));
  }
}

LOWRANK_INLINE void expand_one(const lowrank_expansion *e, size_t i, size_t j) {
  size_t at = i * e->columns + j;
  float sum = e->q[j] * e->p[i];
  for (size_t k = 1; k < e->rank; k++) {
    sum += e->q[k * e->columns + j] * e->p[k * e->rows + i];
  }
  e->result[at] = sum;
  e->m[at] = lcomm_error_kept(e->m[at], e->share * sum);
}

LOWRANK_INLINE void expand_rows(bool streams, const lowrank_expansion *e) {
  const size_t piece = EXPANDED_VECTORS * WIDTH;
  for (size_t i = 0; i < e->rows; i++) {
    size_t j = 0;
    for (; j + piece <= e->columns; j += piece) {
      ask(e->m + i * e->columns + j, AHEAD, piece * sizeof *e->m);
      expand_columns(EXPANDED_VECTORS, streams, e, i, j);
    }
    for (; j + WIDTH <= e->columns; j += WIDTH) {
      expand_columns(1, streams, e, i, j);
    }
    for (; j < e->columns; j++) {
      expand_one(e, i, j);
    }
  }
}

static void expand(const lowrank_expansion *e) {
  bool aligned = (uintptr_t)e->result % sizeof(lcomm_vector) == 0 && e->columns % WIDTH == 0;
  if (aligned && e->rows * e->columns >= LCOMM_STREAM_COUNT) {
    expand_rows(true, e);
    _mm_sfence();
  } else {
    expand_rows(false, e);
  }
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_LOWRANK_BACK_BODY_H
#define LCOMM_KERNELS_LOWRANK_BACK_BODY_H

/* Matrices of low rank, written once for vectors of any width: project_back. M is read once where
 * rank is at most RANKS. The file that includes this includes lowrank_body.h before. */

#include "kernels/lowrank_body.h"

enum {
  ROWS = LCOMM_LOWRANK_ROWS,
  ROWS_AT_ONCE = 8,  /* read side by side */
  PANEL = 1024,      /* columns whose sums are in a cache */
  COLUMN_VECTORS = 2 /* of a row: they and RANKS make the sums in registers */
};

/* Sums of up to ROWS rows, PANEL columns and RANKS vectors of P, which lie `rows` apart. `ranks` is
 * a constant wherever it is used. */

typedef struct lowrank_panel {
  const float *m, *p;
  size_t rows, columns; /* of the whole matrix */
  float (*sum)[PANEL];
} lowrank_panel;

/* `vectors` columns in vectors from j on, of `height` rows from i on */
LOWRANK_INLINE void add_columns(size_t ranks, size_t vectors, lowrank_panel panel, size_t i,
                                size_t height, size_t j) {
  lcomm_vector sum[RANKS][COLUMN_VECTORS];
  for (size_t k = 0; k < ranks; k++) {
    for (size_t v = 0; v < vectors; v++) {
      sum[k][v] = plain(panel.sum[k] + j + v * WIDTH);
    }
  }
  for (size_t end = i + height; i < end; i++) {
    const float *m = panel.m + i * panel.columns + j;
    ask(m, ROWS_AT_ONCE * panel.columns * sizeof *m, vectors * sizeof(lcomm_vector));
    for (size_t k = 0; k < ranks; k++) {
      lcomm_vector factor = broadcast(panel.p[k * panel.rows + i]);
      for (size_t v = 0; v < vectors; v++) {
        sum[k][v] = add(sum[k][v], multiply(plain(m + v * WIDTH), factor));
      }
    }
  }
  for (size_t k = 0; k < ranks; k++) {
    for (size_t v = 0; v < vectors; v++) {
      put(panel.sum[k] + j + v * WIDTH, sum[k][v]);
    }
  }
}

LOWRANK_INLINE void add_column(size_t ranks, lowrank_panel panel, size_t i, size_t height,
                               size_t j) {
  for (size_t k = 0; k < ranks; k++) {
    for (size_t r = i; r < i + height; r++) {
      panel.sum[k][j] += panel.m[r * panel.columns + j] * panel.p[k * panel.rows + r];
    }
  }
}

/* `height` rows, n columns */
LOWRANK_INLINE void add_panel(size_t ranks, lowrank_panel panel, size_t height, size_t n) {
  const size_t piece = COLUMN_VECTORS * WIDTH;
  for (size_t i = 0; i < height; i += ROWS_AT_ONCE) {
    size_t some = at_most(height - i, ROWS_AT_ONCE), j = 0;
    for (; j + piece <= n; j += piece) {
      add_columns(ranks, COLUMN_VECTORS, panel, i, some, j);
    }
    for (; j + WIDTH <= n; j += WIDTH) {
      add_columns(ranks, 1, panel, i, some, j);
    }
    for (; j < n; j++) {
      add_column(ranks, panel, i, some, j);
    }
  }
}

/* q[k * columns + j] for k < ranks, j < n */
static void back_panel(size_t ranks, float *q, lowrank_panel panel, size_t height, size_t n) {
  float sum[RANKS][PANEL];
  panel.sum = sum;
  for (size_t k = 0; k < ranks; k++) {
    memset(sum[k], 0, n * sizeof sum[k][0]);
  }
  switch (ranks) {
  case 1:
    add_panel(1, panel, height, n);
    break;
  case 2:
    add_panel(2, panel, height, n);
    break;
  case 3:
    add_panel(3, panel, height, n);
    break;
  default:
    add_panel(RANKS, panel, height, n);
    break;
  }
  for (size_t k = 0; k < ranks; k++) {
    for (size_t j = 0; j < n; j++) {
      q[k * panel.columns + j] += sum[k][j];
    }
  }
}

static void project_back(float *q, const float *m, const float *p, size_t rows, size_t columns,
                         size_t rank) {
  memset(q, 0, rank * columns * sizeof *q);
  for (size_t i = 0; i < rows; i += ROWS) {
    for (size_t j = 0; j < columns; j += PANEL) {
      for (size_t k = 0; k < rank; k += RANKS) {
        lowrank_panel panel = {m + i * columns + j, p + k * rows + i, rows, columns, NULL};
        back_panel(at_most(rank - k, RANKS), q + k * columns + j, panel, at_most(rows - i, ROWS),
                   at_most(columns - j, PANEL));
      }
    }
  }
}

#endif

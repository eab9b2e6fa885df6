/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Products with matrices that travel by low rank. Sums have the order of kernels/lowrank.h, so each
 * has a thread of its own: the LCOMM_LOWRANK_SUMS of a row, the LCOMM_LOWRANK_ROWS of a column. */

#include <math.h>

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_launch.h"
#include "kernels/cuda/cuda_matrices.cuh"
#include "kernels/element.h"
#include "kernels/lowrank.h"

enum {
  THREADS = LCOMM_THREADS_MAX,
  SUMS = LCOMM_LOWRANK_SUMS,
  PANEL = LCOMM_LOWRANK_ROWS,
  ROWS = THREADS / SUMS,         /* of a block of project */
  PANELS = THREADS / LCOMM_WARP, /* that a block of project_back adds at once */
  RANKS = 4,                     /* vectors of P or Q that M is multiplied by at once */
  TILE = 4 * THREADS             /* elements of a block of expand */
};

static_assert((int)SUMS <= (int)LCOMM_WARP && (int)RANKS <= (int)PANELS, "shuffles and warps");

static uint64_t pieces(uint64_t n, uint64_t size) {
  return n / size + (n % size != 0);
}

/* ------------------------------------------------------------------ project */

typedef struct row_part {
  const float *before, *gradient;
  float *m;
  const float *q; /* of the first vector */
} row_part;

/* The products of one of the SUMS with up to RANKS vectors. M is made with the first ones. */
LCOMM_DEVICE void add_products(row_part row, bool makes, uint64_t columns, uint32_t vectors,
                               uint32_t own, float sum[RANKS]) {
  for (uint64_t j = own; j < columns; j += SUMS) {
    if (makes) {
      row.m[j] = row.before[j] + row.gradient[j];
    }
    float value = row.m[j];
    LCOMM_UNROLL for (uint32_t k = 0; k < RANKS; k++) {
      if (k < vectors) {
        sum[k] += value * row.q[k * columns + j];
      }
    }
  }
}

/* The sum of the SUMS, for the first of their threads. */
LCOMM_DEVICE float sum_of_row(float own) {
  LCOMM_UNROLL for (uint32_t width = SUMS / 2; width > 0; width /= 2) {
    own += lcomm_f32_from_bits(lcomm_shuffle_xor(lcomm_f32_bits(own), width));
  }
  return own;
}

LCOMM_KERNEL(project, lcomm_matrices_args) {
  lcomm_list_place place = lcomm_list_place_of(&a.blocks);
  const lcomm_lowrank_matrix *it = &a.matrix[place.piece];
  uint64_t i = (uint64_t)place.block * ROWS + lcomm_thread() / SUMS, columns = it->columns;
  uint32_t own = lcomm_thread() % SUMS;
  for (uint32_t first = 0; first < it->rank; first += RANKS) {
    uint32_t vectors = it->rank - first < RANKS ? it->rank - first : (uint32_t)RANKS;
    float sum[RANKS] = {};
    if (i < it->rows) {
      row_part row = {it->before + i * columns, it->gradient + i * columns, it->m + i * columns,
                      it->was_basis + first * columns};
      add_products(row, first == 0, columns, vectors, own, sum);
    }
    LCOMM_UNROLL for (uint32_t k = 0; k < RANKS; k++) {
      float all = sum_of_row(sum[k]);
      if (own == 0 && k < vectors && i < it->rows) {
        it->p[(first + k) * it->rows + i] = all;
      }
    }
  }
}

static uint64_t blocks_of_rows(const lcomm_lowrank_matrix *matrix) {
  return pieces(matrix->rows, ROWS);
}

extern "C" int lcomm_cuda_run_lowrank_project(const lcomm_lowrank_matrix *list, uint32_t count,
                                              void *stream) {
  lcomm_matrices_args args = {};
  if (count == 0) {
    return 0;
  }
  if (!lcomm_matrices_list(list, count, blocks_of_rows, &args)) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  return LCOMM_LAUNCH(project, lcomm_list_blocks_all(&args.blocks), THREADS, stream, args);
}

/* ------------------------------------------------------------- project_back */

/* A block has LCOMM_WARP columns and RANKS vectors, a warp of it one panel of rows at a time. */
typedef struct column_part {
  const float *m, *p; /* of the column, and of the first vector */
  uint64_t rows, columns;
  uint32_t vectors;
} column_part;

LCOMM_DEVICE void add_panel(column_part part, uint64_t panel, float sum[RANKS]) {
  uint64_t first = panel * PANEL;
  uint64_t end = part.rows - first < PANEL ? part.rows : first + PANEL;
  for (uint64_t i = first; i < end; i++) {
    float value = part.m[i * part.columns];
    LCOMM_UNROLL for (uint32_t k = 0; k < RANKS; k++) {
      if (k < part.vectors) {
        sum[k] += value * part.p[k * part.rows + i];
      }
    }
  }
}

/* Sums of panels join one another in their order: a warp has those of one vector. */
LCOMM_KERNEL(project_back, lcomm_matrices_args) {
  LCOMM_SHARED float sums[PANELS][RANKS][LCOMM_WARP];
  lcomm_list_place place = lcomm_list_place_of(&a.blocks);
  const lcomm_lowrank_matrix *it = &a.matrix[place.piece];
  uint32_t groups = (it->rank + RANKS - 1) / RANKS, first = place.block % groups * RANKS;
  uint32_t vectors = it->rank - first < RANKS ? it->rank - first : (uint32_t)RANKS;
  uint32_t warp = lcomm_warp(), lane = lcomm_lane();
  uint64_t j = (uint64_t)(place.block / groups) * LCOMM_WARP + lane;
  uint64_t panels = *it->lost ? 0 : (it->rows + PANEL - 1) / PANEL;
  column_part part = {it->m + j, it->p + first * it->rows, it->rows, it->columns, vectors};
  float all = 0;
  for (uint64_t begin = 0; begin < panels; begin += PANELS) {
    float sum[RANKS] = {};
    if (begin + warp < panels && j < it->columns) {
      add_panel(part, begin + warp, sum);
    }
    LCOMM_UNROLL for (uint32_t k = 0; k < RANKS; k++) {
      sums[warp][k][lane] = sum[k];
    }
    lcomm_sync_block();
    for (uint32_t w = 0; warp < RANKS && w < PANELS && begin + w < panels; w++) {
      all += sums[w][warp][lane];
    }
    lcomm_sync_block();
  }
  if (warp < vectors && j < it->columns) {
    it->q[(first + warp) * it->columns + j] = all;
  }
}

static uint64_t blocks_of_columns(const lcomm_lowrank_matrix *matrix) {
  return pieces(matrix->columns, LCOMM_WARP) * pieces(matrix->rank, RANKS);
}

extern "C" int lcomm_cuda_run_lowrank_turn(const lcomm_lowrank_matrix *list, uint32_t count,
                                           void *stream) {
  lcomm_matrices_args args = {};
  if (count == 0) {
    return 0;
  }
  if (!lcomm_matrices_list(list, count, blocks_of_columns, &args)) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  int error = lcomm_cuda_run_lowrank_left(list, count, stream);
  return error ? error
               : LCOMM_LAUNCH(project_back, lcomm_list_blocks_all(&args.blocks), THREADS, stream,
                              args);
}

/* ------------------------------------------------------------------- expand */

LCOMM_DEVICE void expand_one(const lcomm_lowrank_matrix *it, uint64_t i, uint64_t j) {
  uint64_t at = i * it->columns + j;
  float sum = it->q[j] * it->p[i];
  for (uint32_t k = 1; k < it->rank; k++) {
    sum += it->q[k * it->columns + j] * it->p[k * it->rows + i];
  }
  it->result[at] = sum;
  it->m[at] = lcomm_error_kept(it->m[at], it->share * sum);
}

LCOMM_DEVICE void give_up_one(const lcomm_lowrank_matrix *it, uint64_t at) {
  it->result[at] = lcomm_f32_from_bits(LCOMM_F32_NAN_BITS);
  it->m[at] = lcomm_matrix_is_usable(it->m[at]) ? it->m[at] : 0;
}

LCOMM_KERNEL(expand, lcomm_matrices_args) {
  lcomm_list_place place = lcomm_list_place_of(&a.blocks);
  const lcomm_lowrank_matrix *it = &a.matrix[place.piece];
  uint64_t first = (uint64_t)place.block * TILE, n = it->rows * it->columns;
  uint64_t end = n - first < TILE ? n : first + TILE, at = first + lcomm_thread();
  uint64_t i = at / it->columns, j = at % it->columns;
  bool lost = *it->lost != 0;
  for (; at < end; at += THREADS, j += THREADS) {
    while (j >= it->columns) {
      j -= it->columns;
      i++;
    }
    if (lost) {
      give_up_one(it, at);
    } else {
      expand_one(it, i, j);
    }
  }
}

static uint64_t blocks_of_elements(const lcomm_lowrank_matrix *matrix) {
  return pieces(matrix->rows * matrix->columns, TILE);
}

extern "C" int lcomm_cuda_run_lowrank_finish(const lcomm_lowrank_matrix *list, uint32_t count,
                                             void *stream) {
  lcomm_matrices_args args = {};
  if (count == 0) {
    return 0;
  }
  if (!lcomm_matrices_list(list, count, blocks_of_elements, &args)) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  int error = lcomm_cuda_run_lowrank_basis(list, count, stream);
  return error ? error
               : LCOMM_LAUNCH(expand, lcomm_list_blocks_all(&args.blocks), THREADS, stream, args);
}

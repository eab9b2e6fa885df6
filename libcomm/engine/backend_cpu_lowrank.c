/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Matrices of low rank in memory of the host. */

#include <math.h>
#include <string.h>

#include "libcomm/engine/exec_internal.h"

/* NaN compares with nothing. */
static bool is_usable(const float *values, uint64_t n) {
  bool all = true;
  for (uint64_t i = 0; i < n; i++) {
    all &= fabsf(values[i]) < LCOMM_LOWRANK_TOO_LARGE;
  }
  return all;
}

static void copy(float *to, const float *from, uint64_t n) {
  if (to != from) {
    memcpy(to, from, n * sizeof *to);
  }
}

/* ---------------------------------------------------------------- the steps */

static void project_one(const lcomm_kernels_lowrank *kernels, const lcomm_lowrank_matrix *it) {
  copy(it->m, it->before, it->rows * it->columns);
  kernels->project(it->p, it->m, it->gradient, it->was_basis, it->rows, it->columns, it->rank);
}

static void turn_one(const lcomm_kernels_lowrank *kernels, const lcomm_lowrank_matrix *it) {
  *it->lost = !is_usable(it->p, it->rank * it->rows);
  if (*it->lost) {
    memset(it->q, 0, it->rank * it->columns * sizeof *it->q);
    return;
  }
  lcomm_lowrank_orthonormalise(it->p, it->rows, it->rank);
  kernels->project_back(it->q, it->m, it->p, it->rows, it->columns, it->rank);
}

static void give_up(const lcomm_lowrank_matrix *it) {
  for (uint64_t i = 0; i < it->rows * it->columns; i++) {
    it->result[i] = NAN;
    it->m[i] = fabsf(it->m[i]) < LCOMM_LOWRANK_TOO_LARGE ? it->m[i] : 0;
  }
}

static void finish_one(const lcomm_kernels_lowrank *kernels, const lcomm_lowrank_matrix *it) {
  uint64_t values = it->rank * it->columns;
  *it->lost |= !is_usable(it->q, values);
  if (*it->lost) {
    copy(it->basis, it->was_basis, values);
    give_up(it);
    return;
  }
  kernels->expand(it->result, it->m, it->p, it->q, it->rows, it->columns, it->rank, it->share);
  memcpy(it->basis, it->q, values * sizeof *it->basis);
  lcomm_lowrank_orthonormalise(it->basis, it->columns, it->rank);
}

/* ------------------------------------------------------------------ the table */

static lcomm_status project(lcomm_run *run, const lcomm_lowrank_matrix *list, size_t count) {
  for (size_t i = 0; i < count; i++) {
    project_one(&run->comm->kernels->lowrank, &list[i]);
  }
  return LCOMM_OK;
}

static lcomm_status turn(lcomm_run *run, const lcomm_lowrank_matrix *list, size_t count) {
  for (size_t i = 0; i < count; i++) {
    turn_one(&run->comm->kernels->lowrank, &list[i]);
  }
  return LCOMM_OK;
}

static lcomm_status finish(lcomm_run *run, const lcomm_lowrank_matrix *list, size_t count) {
  for (size_t i = 0; i < count; i++) {
    finish_one(&run->comm->kernels->lowrank, &list[i]);
  }
  return LCOMM_OK;
}

const lcomm_backend_lowrank lcomm_backend_cpu_lowrank = {
    .project = project, .turn = turn, .finish = finish};

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/feedback/ef_lowrank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/lowrank.h"
#include "libcomm/base/clock.h"
#include "libcomm/feedback/ef.h"
#include "libcomm/feedback/ef_memory.h"

/* ---------------------------------------------------------------- making */

static bool make_factor(const lcomm_ef *ef, lcomm_ef_factor *factor) {
  factor->values =
      lcomm_links_memory_get(&ef->comm->links, (factor->count + 1) * sizeof *factor->values);
  return factor->values != NULL;
}

lcomm_status lcomm_ef_lowrank_make(lcomm_ef *ef, const lcomm_codec_spec *by,
                                   lcomm_ef_matrix *matrices, size_t count) {
  lcomm_ef_lowrank *it = &ef->lowrank;
  *it = (lcomm_ef_lowrank){
      .rank = by->rank, .matrices = matrices, .count = count, .values = {.format = by->format}};
  for (size_t i = 0; i < count; i++) {
    matrices[i].left = it->left.count;
    matrices[i].right = it->right.count;
    it->left.count += by->rank * matrices[i].rows;
    it->right.count += by->rank * matrices[i].columns;
  }
  bool whole = make_factor(ef, &it->left) && make_factor(ef, &it->right);
  return whole ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

/* A run that was given up may still send from its vector; it keeps it then. */
static void free_factor(const lcomm_ef *ef, lcomm_ef_factor *factor) {
  if (factor->run && factor->run->messages.abandoned) {
    factor->run->memory.own_vector = (uint8_t *)factor->values;
    factor->values = NULL;
  }
  lcomm_run_destroy(factor->run);
  lcomm_links_memory_free(&ef->comm->links, factor->values);
}

void lcomm_ef_lowrank_free(lcomm_ef *ef) {
  free_factor(ef, &ef->lowrank.left);
  free_factor(ef, &ef->lowrank.right);
  free(ef->lowrank.matrices);
  ef->lowrank = (lcomm_ef_lowrank){.rank = 0};
}

void lcomm_ef_lowrank_retire(lcomm_ef *ef) {
  lcomm_run_retire(ef->comm, ef->lowrank.left.run);
  lcomm_run_retire(ef->comm, ef->lowrank.right.run);
  ef->lowrank.left.run = ef->lowrank.right.run = NULL;
}

bool lcomm_ef_lowrank_is_first(const lcomm_ef *ef, const lcomm_run *run) {
  return run && run == ef->lowrank.left.run;
}

bool lcomm_ef_lowrank_is_second(const lcomm_ef *ef, const lcomm_run *run) {
  return run && run == ef->lowrank.right.run;
}

/* ------------------------------------------------------------------ runs */

/* A sum of a factor, as of any other vector of tensors. */
static lcomm_status make_run(const lcomm_ef *ef, lcomm_ef_factor *factor) {
  lcomm_ef of = *ef; /* lends what plans are made from */
  of.milder = (lcomm_codec_spec){.format = {.codec = NULL}};
  of.request = (lcomm_plan_request){.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                                    .count = factor->count,
                                    .dtype = LCOMM_FLOAT32,
                                    .op = ef->request.op,
                                    .location = ef->request.location,
                                    .error_feedback = true,
                                    .net = ef->lowrank.values};
  return factor->run ? LCOMM_OK : lcomm_ef_make_run(&of, false, 0, &factor->run);
}

lcomm_status lcomm_ef_lowrank_feedback(const lcomm_ef *ef, lcomm_feedback_state **feedback) {
  lcomm_status status = lcomm_feedback_make(ef->comm, ef->request.location,
                                            lcomm_span_whole(0, ef->request.count), 0, feedback);
  return status == LCOMM_OK ? status : lcomm_ef_out_of_memory(ef);
}

bool lcomm_ef_lowrank_is_made(const lcomm_ef *ef) {
  const lcomm_ef_lowrank *it = &ef->lowrank;
  return it->left.run && it->right.run && ef->state.feedback && ef->state.basis.now;
}

lcomm_status lcomm_ef_lowrank_make_basis(const lcomm_ef *ef, lcomm_ef_state *state) {
  uint64_t count = ef->lowrank.right.count;
  if (!state->basis.now) {
    state->basis.now = lcomm_ef_memory_get(ef->comm, ef->request.location, count);
  }
  return state->basis.now ? LCOMM_OK : lcomm_ef_out_of_memory(ef);
}

lcomm_status lcomm_ef_lowrank_prepare(lcomm_ef *ef) {
  lcomm_ef_lowrank *it = &ef->lowrank;
  lcomm_ef_state *state = &ef->state;
  LCOMM_TRY(make_run(ef, &it->left));
  LCOMM_TRY(make_run(ef, &it->right));
  LCOMM_TRY(state->feedback ? LCOMM_OK : lcomm_ef_lowrank_feedback(ef, &state->feedback));
  return lcomm_ef_lowrank_make_basis(ef, state);
}

uint64_t lcomm_ef_lowrank_basis(const lcomm_ef *ef, uint64_t at, uint64_t *count) {
  const lcomm_ef_lowrank *it = &ef->lowrank;
  *count = 0;
  for (size_t i = 0; i < it->count; i++) {
    if (it->matrices[i].at == at) {
      *count = it->rank * it->matrices[i].columns;
      return it->matrices[i].right;
    }
  }
  return 0;
}

/* ------------------------------------------------------------- arithmetic */

/* From here on a value may overflow in a sum. */
static const float too_large = 0x1p96f;

/* NaN compares with nothing. */
static bool is_usable(const float *values, uint64_t n) {
  bool all = true;
  for (uint64_t i = 0; i < n; i++) {
    all &= fabsf(values[i]) < too_large;
  }
  return all;
}

/* What an operation is about to change, where it can be undone: `now` is as `before`. */
static float *bring(lcomm_ef_array array, uint64_t at, uint64_t n) {
  lcomm_ef_array part = lcomm_ef_array_at(array, at);
  if (part.before != part.now) {
    memcpy(part.now, part.before, n * sizeof(float));
  }
  return part.now;
}

/* A Q that has never been is zeros. Later it is orthonormal. */
static void start_basis(const lcomm_ef *ef, const lcomm_ef_matrix *matrix, float *q) {
  bool any = false;
  for (uint64_t i = 0; i < matrix->columns; i++) {
    any |= q[i] < 0 || q[i] > 0;
  }
  if (!any) {
    lcomm_lowrank_start(q, matrix->columns, ef->lowrank.rank, 0);
  }
}

static void project(const lcomm_ef *ef, lcomm_ef_matrix *matrix, const float *gradient) {
  const lcomm_ef_lowrank *it = &ef->lowrank;
  uint64_t columns = matrix->columns;
  float *m = bring(ef->state.feedback->residual, matrix->at, matrix->rows * columns);
  float *q = bring(ef->state.basis, matrix->right, it->rank * columns);
  matrix->lost = false;
  start_basis(ef, matrix, q);
  ef->comm->kernels->lowrank.project(it->left.values + matrix->left, m, gradient, q, matrix->rows,
                                     columns, it->rank);
}

void lcomm_ef_lowrank_project(lcomm_ef *ef, const float *vector) {
  double begun_s = lcomm_clock_s();
  for (size_t i = 0; i < ef->lowrank.count; i++) {
    lcomm_ef_matrix *matrix = &ef->lowrank.matrices[i];
    project(ef, matrix, vector + matrix->at);
  }
  ef->lowrank.projected_s = lcomm_clock_s() - begun_s;
}

static void turn(const lcomm_ef *ef, lcomm_ef_matrix *matrix) {
  const lcomm_ef_lowrank *it = &ef->lowrank;
  uint64_t columns = matrix->columns;
  float *p = it->left.values + matrix->left, *q = it->right.values + matrix->right;
  matrix->lost = !is_usable(p, it->rank * matrix->rows);
  if (matrix->lost) {
    memset(q, 0, it->rank * columns * sizeof *q);
    return;
  }
  lcomm_lowrank_orthonormalise(p, matrix->rows, it->rank);
  ef->comm->kernels->lowrank.project_back(q, ef->state.feedback->residual.now + matrix->at, p,
                                          matrix->rows, columns, it->rank);
}

/* Both sums together stand for one of the whole vector. */
static void account(const lcomm_ef *ef, lcomm_run *run, double share) {
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    run->stats.exact_bytes[link] = (uint64_t)(share * (double)run->stats.exact_bytes[link]);
  }
  run->stats.encode_s += ef->lowrank.projected_s;
}

void lcomm_ef_lowrank_turn(lcomm_ef *ef) {
  double begun_s = lcomm_clock_s();
  for (size_t i = 0; i < ef->lowrank.count; i++) {
    turn(ef, &ef->lowrank.matrices[i]);
  }
  account(ef, ef->lowrank.left.run, (double)ef->request.count / (double)ef->lowrank.left.count);
  ef->lowrank.projected_s = lcomm_clock_s() - begun_s;
}

static void give_up(float *result, float *m, uint64_t n) {
  for (uint64_t i = 0; i < n; i++) {
    result[i] = NAN;
    m[i] = fabsf(m[i]) < too_large ? m[i] : 0;
  }
}

static void finish(const lcomm_ef *ef, lcomm_ef_matrix *matrix, float *result) {
  const lcomm_ef_lowrank *it = &ef->lowrank;
  uint64_t columns = matrix->columns, values = it->rank * columns;
  const float *p = it->left.values + matrix->left, *q = it->right.values + matrix->right;
  float *m = ef->state.feedback->residual.now + matrix->at;
  float *basis = ef->state.basis.now + matrix->right;
  float share = ef->request.op == LCOMM_AVG ? 1.0f : 1.0f / (float)ef->comm->size;
  if (matrix->lost || !is_usable(q, values)) {
    give_up(result, m, matrix->rows * columns);
    return;
  }
  ef->comm->kernels->lowrank.expand(result, m, p, q, matrix->rows, columns, it->rank, share);
  memcpy(basis, q, values * sizeof *basis);
  lcomm_lowrank_orthonormalise(basis, columns, it->rank);
}

void lcomm_ef_lowrank_finish(lcomm_ef *ef, float *vector) {
  double begun_s = lcomm_clock_s();
  for (size_t i = 0; i < ef->lowrank.count; i++) {
    lcomm_ef_matrix *matrix = &ef->lowrank.matrices[i];
    finish(ef, matrix, vector + matrix->at);
  }
  account(ef, ef->lowrank.right.run, 0);
  ef->lowrank.right.run->stats.decode_s += lcomm_clock_s() - begun_s;
}

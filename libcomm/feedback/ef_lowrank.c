/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/feedback/ef_lowrank.h"

#include <stdlib.h>

#include "kernels/lowrank.h"
#include "libcomm/base/clock.h"
#include "libcomm/engine/backend.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/feedback/ef.h"
#include "libcomm/feedback/ef_memory.h"
#include "libcomm/plan/auto_lowrank.h"

/* ---------------------------------------------------------------- making */

/* Where the vector is; on the host local peers can read it. */
static void *get_memory(const lcomm_ef *ef, uint64_t size) {
  lcomm_memory_location location = ef->request.location;
  return lcomm_memory_is_on_device(location) ? lcomm_device_vector(ef->comm, location.device, size)
                                             : lcomm_links_memory_get(&ef->comm->links, size);
}

static void free_memory(const lcomm_ef *ef, void *memory) {
  if (lcomm_memory_is_on_device(ef->request.location)) {
    lcomm_device_vector_free(ef->comm, memory);
  } else {
    lcomm_links_memory_free(&ef->comm->links, memory);
  }
}

static bool make_factor(const lcomm_ef *ef, lcomm_ef_factor *factor) {
  factor->values = get_memory(ef, (factor->count + 1) * sizeof *factor->values);
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
  it->work = calloc(count, sizeof *it->work);
  it->lost = get_memory(ef, count * sizeof *it->lost);
  bool whole = make_factor(ef, &it->left) && make_factor(ef, &it->right) && it->work && it->lost;
  return whole ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

/* A run that was given up may still send from its vector; it keeps it then. */
static void free_factor(const lcomm_ef *ef, lcomm_ef_factor *factor) {
  if (factor->run && factor->run->messages.abandoned) {
    factor->run->memory.own_vector = (uint8_t *)factor->values;
    factor->values = NULL;
  }
  lcomm_run_destroy(factor->run);
  free_memory(ef, factor->values);
}

void lcomm_ef_lowrank_free(lcomm_ef *ef) {
  free_factor(ef, &ef->lowrank.left);
  free_factor(ef, &ef->lowrank.right);
  free_memory(ef, ef->lowrank.lost);
  free(ef->lowrank.work);
  free(ef->lowrank.matrices);
  ef->lowrank = (lcomm_ef_lowrank){.rank = 0};
}

void lcomm_ef_lowrank_retire(lcomm_ef *ef) {
  lcomm_run_retire(ef->comm, ef->lowrank.left.run);
  lcomm_run_retire(ef->comm, ef->lowrank.right.run);
  ef->lowrank.left.run = ef->lowrank.right.run = NULL;
}

/* What is played is a copy of the run. */
static bool is_that_of(const lcomm_ef_factor *factor, const lcomm_run *run) {
  return run && factor->run && run->plan == factor->run->plan;
}

bool lcomm_ef_lowrank_is_first(const lcomm_ef *ef, const lcomm_run *run) {
  return is_that_of(&ef->lowrank.left, run);
}

bool lcomm_ef_lowrank_is_second(const lcomm_ef *ef, const lcomm_run *run) {
  return is_that_of(&ef->lowrank.right, run);
}

/* ------------------------------------------------------------------ runs */

/* A sum of a factor, as of any other vector of tensors. */
static lcomm_status make_run(const lcomm_ef *ef, lcomm_ef_factor *factor) {
  lcomm_ef of = *ef; /* lends what plans are made from */
  of.milder = (lcomm_codec_spec){.format = {.codec = NULL}};
  of.request = lcomm_lowrank_request(&ef->request, &ef->lowrank.values, factor->count);
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

/* The same bits, whatever the program has set. */
void lcomm_ef_lowrank_start(float *basis, uint64_t columns, unsigned rank) {
  uint32_t environment = lcomm_fp_enter();
  lcomm_lowrank_start(basis, columns, rank, 0);
  lcomm_fp_leave(environment);
}

lcomm_status lcomm_ef_lowrank_make_basis(const lcomm_ef *ef, lcomm_ef_state *state) {
  const lcomm_ef_lowrank *it = &ef->lowrank;
  if (state->basis.now) {
    return LCOMM_OK;
  }
  state->basis.now = lcomm_ef_memory_get(ef->comm, ef->request.location, it->right.count);
  for (size_t i = 0; state->basis.now && i < it->count; i++) {
    lcomm_ef_lowrank_start(state->basis.now + it->matrices[i].right, it->matrices[i].columns,
                           it->rank);
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

/* Of this operation, whose arrays have changed their roles. */
static lcomm_lowrank_matrix describe(const lcomm_ef *ef, size_t index, float *vector) {
  const lcomm_ef_lowrank *it = &ef->lowrank;
  const lcomm_ef_matrix *matrix = &it->matrices[index];
  lcomm_ef_array residual = lcomm_ef_array_at(ef->state.feedback->residual, matrix->at);
  lcomm_ef_array basis = lcomm_ef_array_at(ef->state.basis, matrix->right);
  return (lcomm_lowrank_matrix){.rows = matrix->rows,
                                .columns = matrix->columns,
                                .rank = it->rank,
                                .share = ef->request.op == LCOMM_AVG ? 1.0f
                                                                     : 1.0f / (float)ef->comm->size,
                                .gradient = vector + matrix->at,
                                .before = residual.before,
                                .m = residual.now,
                                .result = vector + matrix->at,
                                .p = it->left.values + matrix->left,
                                .q = it->right.values + matrix->right,
                                .was_basis = basis.before,
                                .basis = basis.now,
                                .lost = &it->lost[index]};
}

lcomm_status lcomm_ef_lowrank_project(lcomm_ef *ef, lcomm_run *run, float *vector) {
  lcomm_ef_lowrank *it = &ef->lowrank;
  double begun_s = lcomm_clock_s();
  for (size_t i = 0; i < it->count; i++) {
    it->work[i] = describe(ef, i, vector);
  }
  lcomm_status status = run->backend->lowrank->project(run, it->work, it->count);
  it->computed_s = lcomm_clock_s() - begun_s;
  return status;
}

lcomm_status lcomm_ef_lowrank_turn(lcomm_ef *ef, lcomm_run *run) {
  lcomm_ef_lowrank *it = &ef->lowrank;
  double begun_s = lcomm_clock_s();
  run->stats.encode_s += it->computed_s;
  lcomm_status status = run->backend->lowrank->turn(run, it->work, it->count);
  it->computed_s = lcomm_clock_s() - begun_s;
  return status;
}

lcomm_status lcomm_ef_lowrank_finish(lcomm_ef *ef, lcomm_run *run) {
  lcomm_ef_lowrank *it = &ef->lowrank;
  double begun_s = lcomm_clock_s();
  run->stats.encode_s += it->computed_s;
  lcomm_status status = run->backend->lowrank->finish(run, it->work, it->count);
  run->stats.decode_s += lcomm_clock_s() - begun_s;
  return status;
}

lcomm_codec_spec lcomm_ef_lowrank_codec(const lcomm_ef *ef) {
  lcomm_codec_spec codec = ef->lowrank.values;
  codec.error_feedback = true;
  codec.rank = (uint16_t)ef->lowrank.rank;
  return codec;
}

lcomm_trace_factor lcomm_ef_lowrank_factor(const lcomm_ef *ef, const lcomm_run *run) {
  const lcomm_ef_lowrank *it = &ef->lowrank;
  bool first = lcomm_ef_lowrank_is_first(ef, run), second = lcomm_ef_lowrank_is_second(ef, run);
  if (!first && !second) {
    return (lcomm_trace_factor){.sum = 0};
  }
  return (lcomm_trace_factor){.sum = first ? 1 : 2,
                              .rank = it->rank,
                              .elements = ef->request.count,
                              .rows = it->left.count / it->rank,
                              .columns = it->right.count / it->rank};
}

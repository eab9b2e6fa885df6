/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_lowrank.h"

#include <stdlib.h>

#include "kernels/element.h"

typedef struct worker {
  const lcomm_bench_options *options;
  float *m, *gradient, *passed, *p, *q;
} worker;

static size_t matrix_size(const lcomm_bench_options *o) {
  return o->matrix.rows * o->matrix.columns * sizeof(float);
}

static size_t vectors_size(const lcomm_bench_options *o, size_t length) {
  return o->matrix.rank * length * sizeof(float);
}

static void free_worker(worker *w) {
  const lcomm_bench_options *o = w->options;
  tool_pages_free(w->m, matrix_size(o));
  tool_pages_free(w->gradient, matrix_size(o));
  tool_pages_free(w->passed, matrix_size(o));
  tool_pages_free(w->p, vectors_size(o, o->matrix.rows));
  tool_pages_free(w->q, vectors_size(o, o->matrix.columns));
}

static lcomm_status make_worker(const lcomm_bench_options *o, worker *w) {
  *w = (worker){.options = o};
  w->m = tool_pages_alloc(matrix_size(o));
  w->gradient = tool_pages_alloc(matrix_size(o));
  w->passed = tool_pages_alloc(matrix_size(o));
  w->p = tool_pages_alloc(vectors_size(o, o->matrix.rows));
  w->q = tool_pages_alloc(vectors_size(o, o->matrix.columns));
  if (!w->m || !w->gradient || !w->passed || !w->p || !w->q) {
    return LCOMM_ERR_MEMORY;
  }
  for (size_t i = 0; i < o->matrix.rows * o->matrix.columns; i++) {
    w->gradient[i] = (float)(int32_t)lcomm_random(o->synthetic.seed, i) * 0x1p-31f;
  }
  lcomm_lowrank_start(w->q, o->matrix.columns, o->matrix.rank, 1);
  return LCOMM_OK;
}

/* The parts of every table in their order, then the pass. The result takes the place of the
 * gradient, as in the library: both and what M keeps then have the same sum for ever. */
static void run_variant(void *argument, size_t variant) {
  const worker *w = argument;
  const lcomm_bench_options *o = w->options;
  const lcomm_matrix_shape *is = &o->matrix;
  size_t table = variant / LCOMM_LOWRANK_PARTS;
  if (table == o->table_count) {
    o->tables[table - 1]->f32_add(w->gradient, 1.0f, w->passed, is->rows * is->columns);
    return;
  }
  const lcomm_kernels_lowrank *k = &o->tables[table]->lowrank;
  switch ((lcomm_lowrank_part)(variant % LCOMM_LOWRANK_PARTS)) {
  case LCOMM_LOWRANK_PROJECT:
    k->project(w->p, w->m, w->gradient, w->q, is->rows, is->columns, is->rank);
    return;
  case LCOMM_LOWRANK_ORTHONORMALISE:
    lcomm_lowrank_orthonormalise(w->p, is->rows, is->rank);
    return;
  case LCOMM_LOWRANK_PROJECT_BACK:
    k->project_back(w->q, w->m, w->p, is->rows, is->columns, is->rank);
    return;
  case LCOMM_LOWRANK_EXPAND:
  case LCOMM_LOWRANK_PARTS:
    k->expand(w->gradient, w->m, w->p, w->q, is->rows, is->columns, is->rank, 1.0f);
    return;
  }
}

static void note(const tool_timing *timing, const double *seconds, size_t table,
                 lcomm_lowrank_speed *speed) {
  double values[TOOL_REPETITIONS_MAX], steps[TOOL_REPETITIONS_MAX] = {0};
  for (size_t part = 0; part <= LCOMM_LOWRANK_PARTS; part++) {
    bool is_pass = part == LCOMM_LOWRANK_PARTS;
    size_t variant = is_pass ? timing->variants - 1 : table * LCOMM_LOWRANK_PARTS + part;
    for (size_t r = 0; r < timing->repetitions; r++) {
      values[r] = seconds[r * timing->variants + variant];
      steps[r] += is_pass ? 0.0 : values[r];
    }
    *(is_pass ? &speed->pass_s : &speed->part_s[part]) =
        tool_spread_of(values, timing->repetitions);
  }
  for (size_t r = 0; r < timing->repetitions; r++) {
    values[r] = steps[r] / seconds[r * timing->variants + timing->variants - 1];
  }
  speed->passes = tool_spread_of(values, timing->repetitions);
  speed->step_s = tool_spread_of(steps, timing->repetitions);
}

static lcomm_status time_workers(const lcomm_bench_options *o, void *const *workers,
                                 lcomm_lowrank_speed *speeds) {
  tool_timing timing = {.threads = o->threads,
                        .variants = o->table_count * LCOMM_LOWRANK_PARTS + 1,
                        .repetitions = o->repetitions,
                        .turns = 1,
                        .workers = workers,
                        .run = run_variant};
  double *seconds = malloc(timing.repetitions * timing.variants * sizeof *seconds);
  if (!seconds) {
    return LCOMM_ERR_MEMORY;
  }
  lcomm_status status = tool_timing_run(&timing, seconds);
  for (size_t t = 0; status == LCOMM_OK && t < o->table_count; t++) {
    speeds[t] = (lcomm_lowrank_speed){.kernels = o->tables[t]};
    note(&timing, seconds, t, &speeds[t]);
  }
  free(seconds);
  return status;
}

lcomm_status lcomm_lowrank_measure(const lcomm_bench_options *options,
                                   lcomm_lowrank_speed *speeds) {
  static worker workers[LCOMM_BENCH_THREADS_MAX];
  static void *pointers[LCOMM_BENCH_THREADS_MAX];
  lcomm_status status = LCOMM_OK;
  size_t made = 0;
  for (; status == LCOMM_OK && made < options->threads; made++) {
    status = make_worker(options, &workers[made]);
    pointers[made] = &workers[made];
  }
  if (status == LCOMM_OK) {
    status = time_workers(options, pointers, speeds);
  }
  while (made > 0) {
    free_worker(&workers[--made]);
  }
  return status;
}

double lcomm_lowrank_ratio(const lcomm_matrix_shape *matrix) {
  double sent = (double)matrix->rank * (double)(matrix->rows + matrix->columns);
  return (double)matrix->rows * (double)matrix->columns / sent;
}

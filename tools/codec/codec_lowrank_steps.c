/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>
#include <stdlib.h>

#include "libcomm/plan/policy.h"
#include "tools/codec/codec_lowrank.h"

/* One tensor of a stream through all steps. */
typedef struct tensor_run {
  const lcomm_dataset_stream *stream;
  const lcomm_source_tensor *tensor;
  const lcomm_kernels_lowrank *kernels;
  bool is_matrix;
  size_t rank;
  float *given, *arrived, *m; /* a matrix: the gradient, the result, what is kept */
  float *p, *q;
  double *exact, *applied; /* sums over the steps */
} tensor_run;

static void free_run(tensor_run *j) {
  free(j->given);
  free(j->arrived);
  free(j->m);
  free(j->p);
  free(j->q);
  free(j->exact);
  free(j->applied);
}

/* Of what is no matrix the factors are of no length. */
static bool make_run(tensor_run *j) {
  size_t count = (size_t)j->tensor->count;
  j->given = calloc(count, sizeof(float));
  j->arrived = calloc(count, sizeof(float));
  j->m = calloc(count, sizeof(float));
  j->p = calloc(j->rank * j->tensor->rows + 1, sizeof(float));
  j->q = calloc(j->rank * j->tensor->columns + 1, sizeof(float));
  j->exact = calloc(count, sizeof(double));
  j->applied = calloc(count, sizeof(double));
  return j->given && j->arrived && j->m && j->p && j->q && j->exact && j->applied;
}

/* What is not finite would be the end of every sum: it counts as 0. */
static void read_step(const tensor_run *j, uint64_t step) {
  size_t number = (size_t)(step % j->stream->step_count);
  lcomm_source_read(j->stream->steps[number], j->tensor->first, j->tensor->count, j->given);
  for (uint64_t i = 0; i < j->tensor->count; i++) {
    j->given[i] = isfinite(j->given[i]) ? j->given[i] : 0.0f;
  }
}

/* One step of one rank alone, see kernels/lowrank.h. */
static void send_matrix(const tensor_run *j) {
  size_t rows = (size_t)j->tensor->rows, columns = (size_t)j->tensor->columns;
  j->kernels->project(j->p, j->m, j->given, j->q, rows, columns, j->rank);
  lcomm_lowrank_orthonormalise(j->p, rows, j->rank);
  j->kernels->project_back(j->q, j->m, j->p, rows, columns, j->rank);
  j->kernels->expand(j->arrived, j->m, j->p, j->q, rows, columns, j->rank, 1.0f);
  lcomm_lowrank_orthonormalise(j->q, columns, j->rank);
}

static void add_up(double *sum, const float *values, uint64_t n) {
  for (uint64_t i = 0; i < n; i++) {
    sum[i] += (double)values[i];
  }
}

static void add_errors(const tensor_run *j, lcomm_steps *steps) {
  uint64_t values =
      j->is_matrix ? j->rank * (j->tensor->rows + j->tensor->columns) : j->tensor->count;
  for (uint64_t i = 0; i < j->tensor->count; i++) {
    double error = j->applied[i] - j->exact[i];
    steps->error_square += error * error;
    steps->exact_square += j->exact[i] * j->exact[i];
  }
  steps->count += j->tensor->count;
  steps->sent_bytes += steps->steps * values * sizeof(float);
}

static void take_steps(const tensor_run *j, lcomm_lowrank_errors *errors) {
  lcomm_lowrank_start(j->q, (size_t)j->tensor->columns, j->rank, 0);
  for (uint64_t step = 0; step < errors->all.steps; step++) {
    read_step(j, step);
    if (j->is_matrix) {
      send_matrix(j);
    }
    add_up(j->exact, j->given, j->tensor->count);
    add_up(j->applied, j->is_matrix ? j->arrived : j->given, j->tensor->count);
    if (step == 0) {
      add_errors(j, &errors->first);
    }
  }
  add_errors(j, &errors->all);
}

static lcomm_status run_tensor(tensor_run *j, lcomm_lowrank_errors *errors) {
  bool whole = make_run(j);
  if (whole) {
    take_steps(j, errors);
    errors->matrices += j->is_matrix;
    errors->covered += j->is_matrix ? j->tensor->count : 0;
  }
  free_run(j);
  return whole ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

static lcomm_status run_stream(const lcomm_bench_options *options,
                               const lcomm_dataset_stream *stream, lcomm_lowrank_errors *errors) {
  const lcomm_source_contents *contents = lcomm_source_contents_of(stream->steps[0]);
  lcomm_status status = LCOMM_OK;
  for (size_t i = 0; status == LCOMM_OK && i < contents->tensor_count; i++) {
    const lcomm_source_tensor *tensor = &contents->tensors[i];
    unsigned rank = (unsigned)options->matrix.rank;
    tensor_run j = {.stream = stream,
                    .tensor = tensor,
                    .kernels = &lcomm_kernels_best()->lowrank,
                    .is_matrix = lcomm_lowrank_gains(rank, tensor->rows, tensor->columns),
                    .rank = rank};
    status = run_tensor(&j, errors);
  }
  return status;
}

lcomm_status lcomm_lowrank_run_steps(const lcomm_bench_options *options,
                                     const lcomm_dataset *dataset, lcomm_lowrank_errors *errors) {
  lcomm_status status = LCOMM_OK;
  uint32_t environment = lcomm_fp_enter();
  *errors = (lcomm_lowrank_errors){.first = {.steps = 1}, .all = {.steps = options->steps}};
  for (size_t i = 0; status == LCOMM_OK && i < dataset->stream_count; i++) {
    status = run_stream(options, &dataset->streams[i], errors);
  }
  lcomm_fp_leave(environment);
  return status;
}

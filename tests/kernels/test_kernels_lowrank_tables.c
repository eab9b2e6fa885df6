/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Every table that runs here makes of matrices of low rank the bytes that the scalar one makes. */

#include "tests/kernels/kernel_matrices.h"

#include <stdbool.h>
#include <stdio.h>

#include "tests/support/unit_tests.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef void operation(const lcomm_kernels_lowrank *k, matrices *a);

static void run_project(const lcomm_kernels_lowrank *k, matrices *a) {
  k->project(a->p, a->m, a->gradient, a->q, a->is.rows, a->is.columns, a->is.rank);
}

static void run_project_alone(const lcomm_kernels_lowrank *k, matrices *a) {
  k->project(a->p, a->m, NULL, a->q, a->is.rows, a->is.columns, a->is.rank);
}

static void run_project_back(const lcomm_kernels_lowrank *k, matrices *a) {
  k->project_back(a->q, a->m, a->p, a->is.rows, a->is.columns, a->is.rank);
}

static void run_expand(const lcomm_kernels_lowrank *k, matrices *a) {
  k->expand(a->result, a->m, a->p, a->q, a->is.rows, a->is.columns, a->is.rank, 0.75f);
}

static void run_step(const lcomm_kernels_lowrank *k, matrices *a) {
  lowrank_step(k, a, 1.0f);
}

/* Equal, or NaN both: which of two NaNs survives is not said. */
static bool is_same(const float *a, const float *b, size_t n) {
  for (size_t i = 0; i < n; i++) {
    bool both_nan = lcomm_f32_magnitude(a[i]) > (int32_t)LCOMM_F32_INF_BITS &&
                    lcomm_f32_magnitude(b[i]) > (int32_t)LCOMM_F32_INF_BITS;
    if (!both_nan && lcomm_f32_bits(a[i]) != lcomm_f32_bits(b[i])) {
      return false;
    }
  }
  return true;
}

static bool are_same(const matrices *a, const matrices *b) {
  size_t n = a->is.rows * a->is.columns;
  return is_same(a->m, b->m, n) && is_same(a->gradient, b->gradient, n) &&
         is_same(a->result, b->result, n) && is_same(a->p, b->p, a->is.rank * a->is.rows) &&
         is_same(a->q, b->q, a->is.rank * a->is.columns);
}

static void compare(operation *run, const matrices *before, matrices *expected, matrices *got) {
  matrices_copy(expected, before);
  run(&lcomm_kernels_scalar.lowrank, expected);
  for (size_t t = 1; lcomm_kernels_list[t] != NULL; t++) {
    if (!lcomm_kernels_runs(lcomm_kernels_list[t])) {
      continue;
    }
    matrices_copy(got, before);
    run(&lcomm_kernels_list[t]->lowrank, got);
    if (!are_same(expected, got)) {
      fail_msg("table %s differs: %zu rows, %zu columns, rank %zu", lcomm_kernels_list[t]->name,
               before->is.rows, before->is.columns, before->is.rank);
    }
  }
}

static void compare_shape(operation *run, matrix_shape is, kind k, uint64_t *random) {
  matrices before = matrices_make(is), expected = matrices_make(is), got = matrices_make(is);
  matrices_fill(&before, k, random);
  compare(run, &before, &expected, &got);
  matrices_free(&before);
  matrices_free(&expected);
  matrices_free(&got);
}

/* Around the lengths at which loops end, and beyond. */
static void compare_all(operation *run) {
  static const size_t rows[] = {0, 1, 2, 7, 8, 9, 63, 64, 65, 130};
  static const size_t columns[] = {0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 100, 130, 1030};
  static const kind kinds[] = {KIND_GRADIENT, KIND_AWKWARD, KIND_BITS};
  uint64_t random = 31;
  for (size_t r = 0; r < COUNT(rows); r++) {
    for (size_t c = 0; c < COUNT(columns); c++) {
      for (size_t rank = 1; rank <= 9; rank++) {
        const matrix_shape is = {rows[r], columns[c], rank};
        compare_shape(run, is, kinds[(r + c + rank) % COUNT(kinds)], &random);
      }
    }
  }
}

static void every_table_projects_as_the_scalar_one_does(void **state) {
  (void)state;
  compare_all(run_project);
  compare_all(run_project_alone);
}

static void every_table_projects_back_as_the_scalar_one_does(void **state) {
  (void)state;
  compare_all(run_project_back);
}

static void every_table_expands_as_the_scalar_one_does(void **state) {
  (void)state;
  compare_all(run_expand);
}

static void every_table_makes_the_steps_of_the_scalar_one(void **state) {
  (void)state;
  compare_all(run_step);
}

/* They may be written past the caches. */
static void every_table_expands_large_matrices_as_the_scalar_one_does(void **state) {
  (void)state;
  uint64_t random = 32;
  const matrix_shape is = {LCOMM_STREAM_COUNT / 4096 + 1, 4096, 1};
  compare_shape(run_expand, is, KIND_BITS, &random);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_table_projects_as_the_scalar_one_does),
    cmocka_unit_test(every_table_projects_back_as_the_scalar_one_does),
    cmocka_unit_test(every_table_expands_as_the_scalar_one_does),
    cmocka_unit_test(every_table_makes_the_steps_of_the_scalar_one),
    cmocka_unit_test(every_table_expands_large_matrices_as_the_scalar_one_does),
};

RUN_TESTS(tests)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_CUDA_LOWRANK_PROPERTIES_H
#define LCOMM_TESTS_KERNELS_CUDA_LOWRANK_PROPERTIES_H

/* Matrices of low rank: steps of lists of matrices have the bytes of the scalar table. */

#include <math.h>

#include "tests/kernels/cuda/kernel_device.h"
#include "tests/kernels/kernel_matrices.h"

enum { MATRICES_MAX = 8 };

/* The same matrix on both sides. */
typedef struct twin_matrix {
  lcomm_lowrank_matrix here, there;
  uint32_t lost;
} twin_matrix;

static inline float *copied(const float *values, uint64_t n, size_t turn) {
  return there(values, n * sizeof *values, turn % 4 * sizeof *values);
}

/* Where an operation can be undone, it reads other arrays than it writes. */
static inline twin_matrix twin_open(matrix_shape is, const matrices *from, bool undo, size_t turn) {
  uint64_t n = is.rows * is.columns, left = is.rank * is.rows, right = is.rank * is.columns;
  twin_matrix it = {.here = {.rows = is.rows, .columns = is.columns, .rank = (uint32_t)is.rank}};
  float *spare = sample_memory(n * sizeof *spare), *other = sample_memory(right * sizeof *other);
  it.here.share = turn % 2 ? 0.25f : 1.0f;
  it.here.m = undo ? spare : from->m;
  it.here.before = from->m;
  it.here.gradient = it.here.result = from->gradient;
  it.here.p = from->p;
  it.here.q = sample_memory(right * sizeof(float));
  it.here.was_basis = from->q;
  it.here.basis = undo ? other : from->q;
  it.there = it.here;
  it.there.before = copied(from->m, n, turn);
  it.there.m = undo ? copied(spare, n, turn + 1) : (float *)(uintptr_t)it.there.before;
  it.there.result = copied(from->gradient, n, turn + 2);
  it.there.gradient = it.there.result;
  it.there.p = copied(from->p, left, turn + 3);
  it.there.q = copied(it.here.q, right, turn);
  it.there.was_basis = copied(from->q, right, turn + 1);
  it.there.basis = undo ? copied(other, right, turn + 2) : (float *)(uintptr_t)it.there.was_basis;
  it.there.lost = there(NULL, sizeof(uint32_t), 0);
  if (!undo) {
    free(spare);
    free(other);
  }
  return it;
}

static inline void twin_close(const twin_matrix *it, const matrices *from) {
  if (it->here.m != from->m) {
    free(it->here.m);
    free(it->here.basis);
  }
  free(it->here.q);
}

/* Equal, or NaN both. */
static inline void expect_values(const float *found_there, const float *wanted, uint64_t n,
                                 const char *what, const lcomm_lowrank_matrix *of) {
  float *found = sample_memory(n * sizeof *found);
  get(found, found_there, n * sizeof *found);
  for (uint64_t i = 0; i < n; i++) {
    bool same = lcomm_f32_bits(found[i]) == lcomm_f32_bits(wanted[i]);
    if (!same && !(isnan(found[i]) && isnan(wanted[i]))) {
      fail_msg("%s, %d x %d, rank %u, value %d: %a is not %a", what, (int)of->rows,
               (int)of->columns, of->rank, (int)i, (double)found[i], (double)wanted[i]);
    }
  }
  free(found);
}

static inline void expect_twin(const twin_matrix *it, const char *when) {
  const lcomm_lowrank_matrix *here = &it->here, *other = &it->there;
  char what[64];
  snprintf(what, sizeof what, "%s: M", when);
  expect_values(other->m, here->m, here->rows * here->columns, what, here);
  snprintf(what, sizeof what, "%s: result", when);
  expect_values(other->result, here->result, here->rows * here->columns, what, here);
  snprintf(what, sizeof what, "%s: P", when);
  expect_values(other->p, here->p, here->rank * here->rows, what, here);
  snprintf(what, sizeof what, "%s: Q", when);
  expect_values(other->q, here->q, here->rank * here->columns, what, here);
  snprintf(what, sizeof what, "%s: basis", when);
  expect_values(other->basis, here->basis, here->rank * here->columns, what, here);
}

/* ------------------------------------------------------- on the processor */

static inline bool all_usable(const float *values, uint64_t n) {
  uint64_t usable = 0;
  for (uint64_t i = 0; i < n; i++) {
    usable += values[i] < 0x1p96f && values[i] > -0x1p96f;
  }
  return usable == n;
}

static inline void project_here(twin_matrix *it) {
  const lcomm_lowrank_matrix *a = &it->here;
  memmove(a->m, a->before, a->rows * a->columns * sizeof *a->m);
  scalar->lowrank.project(a->p, a->m, a->gradient, a->was_basis, a->rows, a->columns, a->rank);
}

static inline void turn_here(twin_matrix *it) {
  const lcomm_lowrank_matrix *a = &it->here;
  it->lost = !all_usable(a->p, a->rank * a->rows);
  memset(a->q, 0, a->rank * a->columns * sizeof *a->q);
  if (!it->lost) {
    lcomm_lowrank_orthonormalise(a->p, a->rows, a->rank);
    scalar->lowrank.project_back(a->q, a->m, a->p, a->rows, a->columns, a->rank);
  }
}

static inline void finish_here(twin_matrix *it) {
  const lcomm_lowrank_matrix *a = &it->here;
  uint64_t values = a->rank * a->columns;
  it->lost |= !all_usable(a->q, values);
  memmove(a->basis, it->lost ? a->was_basis : a->q, values * sizeof *a->basis);
  if (!it->lost) {
    lcomm_lowrank_orthonormalise(a->basis, a->columns, a->rank);
    scalar->lowrank.expand(a->result, a->m, a->p, a->q, a->rows, a->columns, a->rank, a->share);
    return;
  }
  for (uint64_t i = 0; i < a->rows * a->columns; i++) {
    a->result[i] = SAMPLE_NAN;
    a->m[i] = all_usable(&a->m[i], 1) ? a->m[i] : 0;
  }
}

/* ------------------------------------------------------------------ steps */

static inline void step_list(twin_matrix *list, uint32_t count) {
  lcomm_lowrank_matrix all[LCOMM_CUDA_LIST_MAX + 1];
  const lcomm_cuda_lowrank *kernels = &device->kernels->lowrank;
  for (uint32_t i = 0; i < count; i++) {
    all[i] = list[i].there;
    project_here(&list[i]);
  }
  CHECK(kernels->project(all, count, stream));
  for (uint32_t i = 0; i < count; i++) {
    expect_twin(&list[i], "projected");
    turn_here(&list[i]);
  }
  CHECK(kernels->turn(all, count, stream));
  for (uint32_t i = 0; i < count; i++) {
    expect_twin(&list[i], "turned");
    finish_here(&list[i]);
  }
  CHECK(kernels->finish(all, count, stream));
  for (uint32_t i = 0; i < count; i++) {
    uint32_t lost = 2;
    expect_twin(&list[i], "finished");
    get(&lost, list[i].there.lost, sizeof lost);
    assert_int_equal(lost, list[i].lost);
  }
}

/* `steps` of them, from gradients that are filled by `fill`. */
static inline void compare_steps(const matrix_shape *shapes, uint32_t count, bool undo, int steps,
                                 void (*fill)(matrices *a, uint64_t *random)) {
  twin_matrix list[MATRICES_MAX];
  matrices from[MATRICES_MAX];
  uint64_t random = 77;
  for (uint32_t i = 0; i < count; i++) {
    from[i] = matrices_make(shapes[i]);
    fill(&from[i], &random);
    lcomm_lowrank_start(from[i].q, shapes[i].columns, shapes[i].rank, i);
    list[i] = twin_open(shapes[i], &from[i], undo, i);
  }
  for (int step = 0; step < steps; step++) {
    step_list(list, count);
    for (uint32_t i = 0; i < count; i++) {
      const lcomm_lowrank_matrix *here = &list[i].here, *other = &list[i].there;
      make_values(KIND_GRADIENT, here->result, here->rows * here->columns, &random);
      put(other->result, here->result, here->rows * here->columns * sizeof(float));
    }
  }
  CHECK(device->stream.finish(stream));
  for (uint32_t i = 0; i < count; i++) {
    twin_close(&list[i], &from[i]);
    matrices_free(&from[i]);
  }
  give_back();
}

static inline void fill_gradients(matrices *a, uint64_t *random) {
  matrices_fill(a, KIND_GRADIENT, random);
}

static inline void fill_bits(matrices *a, uint64_t *random) {
  matrices_fill(a, *random % 2 ? KIND_BITS : KIND_AWKWARD, random);
}

/* Vectors of P depend on each other: numbers by counter take their places. */
static inline void fill_one_pattern(matrices *a, uint64_t *random) {
  fill_with_products(a->gradient, a->is, 1, random);
}

/* Large enough to overflow in the sums of a P or a Q, and finite. */
static inline void fill_large(matrices *a, uint64_t *random) {
  fill_gradients(a, random);
  for (size_t i = 0; i < a->is.rows * a->is.columns; i++) {
    a->gradient[i] = i % 5 ? 0x1p95f : 0x1p97f;
  }
}

static const matrix_shape few_matrices[] = {{1, 3, 1},    {7, 16, 2},  {17, 33, 4}, {65, 100, 5},
                                            {130, 31, 9}, {64, 64, 3}, {3, 50, 5},  {600, 5, 1}};
static const matrix_shape empty_matrices[] = {{0, 5, 2}, {9, 0, 2}, {20, 20, 2}};

static void steps_of_matrices_are_those_of_the_scalar_table(void **state) {
  (void)state;
  compare_steps(few_matrices, MATRICES_MAX, false, 3, fill_gradients);
  compare_steps(few_matrices, MATRICES_MAX, true, 1, fill_gradients);
  compare_steps(empty_matrices, 3, false, 2, fill_gradients);
}

static void matrices_that_cannot_be_used_are_given_up_as_on_the_processor(void **state) {
  (void)state;
  compare_steps(few_matrices, MATRICES_MAX, false, 2, fill_bits);
  compare_steps(few_matrices, MATRICES_MAX, true, 1, fill_bits);
  compare_steps(few_matrices, MATRICES_MAX, true, 1, fill_large);
}

static void vectors_that_depend_on_others_are_replaced_as_on_the_processor(void **state) {
  (void)state;
  compare_steps(few_matrices, MATRICES_MAX, false, 2, fill_one_pattern);
}

/* Of two vectors that are nearly the same little is left, in which the last bit of a sum shows. */
static void sums_in_float64_have_the_order_of_the_processor(void **state) {
  const matrix_shape is = {6000, 3, 2};
  matrices from = matrices_make(is);
  uint64_t random = 5;
  (void)state;
  twin_matrix it = twin_open(is, &from, false, 0);
  for (size_t i = 0; i < is.rows; i++) {
    it.here.p[i] = sample_normal(&random);
    it.here.p[is.rows + i] = it.here.p[i] + 4e-6f * sample_normal(&random);
  }
  put(it.there.p, it.here.p, is.rank * is.rows * sizeof(float));
  CHECK(device->kernels->lowrank.turn(&it.there, 1, stream));
  turn_here(&it);
  expect_twin(&it, "nearly the same");
  twin_close(&it, &from);
  matrices_free(&from);
  give_back();
}

static void longer_lists_of_matrices_are_refused(void **state) {
  lcomm_lowrank_matrix all[LCOMM_CUDA_LIST_MAX + 1] = {{.rows = 0}};
  const lcomm_cuda_lowrank *kernels = &device->kernels->lowrank;
  (void)state;
  assert_int_not_equal(kernels->project(all, LCOMM_CUDA_LIST_MAX + 1, stream), 0);
  assert_int_not_equal(kernels->turn(all, LCOMM_CUDA_LIST_MAX + 1, stream), 0);
  assert_int_not_equal(kernels->finish(all, LCOMM_CUDA_LIST_MAX + 1, stream), 0);
  CHECK(kernels->project(all, 0, stream));
}

#define LOWRANK_PROPERTIES(TEST)                                                                   \
  TEST(steps_of_matrices_are_those_of_the_scalar_table),                                           \
      TEST(matrices_that_cannot_be_used_are_given_up_as_on_the_processor),                         \
      TEST(vectors_that_depend_on_others_are_replaced_as_on_the_processor),                        \
      TEST(sums_in_float64_have_the_order_of_the_processor),                                       \
      TEST(longer_lists_of_matrices_are_refused)

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Matrices of low rank: what the best table makes of them, against float64. */

#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "tests/kernels/kernel_matrices.h"
#include "tests/support/unit_tests.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const lcomm_kernels_lowrank *kernels(void) {
  return &lcomm_kernels_best()->lowrank;
}

static const matrix_shape shapes[] = {{1, 1, 1},    {5, 3, 2},     {16, 16, 4},   {63, 17, 3},
                                      {64, 130, 5}, {129, 31, 8},  {200, 47, 9},  {300, 1030, 4},
                                      {2, 2100, 2}, {700, 256, 4}, {333, 33, 12}, {1000, 1, 1}};

static bool is_near(double value, double expected, double magnitude, size_t terms) {
  return fabs(value - expected) <= (double)(terms + 2) * FLT_EPSILON * magnitude + 1e-37;
}

/* Products */

static void check_p(const matrices *a) {
  matrix_shape is = a->is;
  for (size_t k = 0; k < is.rank; k++) {
    for (size_t i = 0; i < is.rows; i++) {
      double sum = 0, magnitude = 0;
      for (size_t j = 0; j < is.columns; j++) {
        double product = (double)a->m[i * is.columns + j] * (double)a->q[k * is.columns + j];
        sum += product;
        magnitude += fabs(product);
      }
      assert_true(is_near((double)a->p[k * is.rows + i], sum, magnitude, is.columns / 16 + 4));
    }
  }
}

static void project_adds_the_gradient_and_multiplies_by_q(void **state) {
  (void)state;
  uint64_t random = 3;
  for (size_t s = 0; s < COUNT(shapes); s++) {
    matrix_shape is = shapes[s];
    matrices a = matrices_make(is), before = matrices_make(is);
    matrices_fill(&before, KIND_GRADIENT, &random);
    matrices_copy(&a, &before);
    kernels()->project(a.p, a.m, a.gradient, a.q, is.rows, is.columns, is.rank);
    for (size_t i = 0; i < is.rows * is.columns; i++) {
      assert_true(a.m[i] == before.m[i] + before.gradient[i]);
    }
    check_p(&a);
    matrices_free(&a);
    matrices_free(&before);
  }
}

static void project_without_a_gradient_leaves_m_as_it_is(void **state) {
  (void)state;
  uint64_t random = 4;
  for (size_t s = 0; s < COUNT(shapes); s++) {
    matrix_shape is = shapes[s];
    matrices a = matrices_make(is), before = matrices_make(is);
    matrices_fill(&before, KIND_GRADIENT, &random);
    matrices_copy(&a, &before);
    kernels()->project(a.p, a.m, NULL, a.q, is.rows, is.columns, is.rank);
    assert_memory_equal(a.m, before.m, is.rows * is.columns * sizeof *a.m);
    check_p(&a);
    matrices_free(&a);
    matrices_free(&before);
  }
}

static void project_back_multiplies_m_transposed_by_p(void **state) {
  (void)state;
  uint64_t random = 5;
  for (size_t s = 0; s < COUNT(shapes); s++) {
    matrix_shape is = shapes[s];
    matrices a = matrices_make(is);
    matrices_fill(&a, KIND_GRADIENT, &random);
    kernels()->project_back(a.q, a.m, a.p, is.rows, is.columns, is.rank);
    for (size_t k = 0; k < is.rank; k++) {
      for (size_t j = 0; j < is.columns; j++) {
        double sum = 0, magnitude = 0;
        for (size_t i = 0; i < is.rows; i++) {
          double product = (double)a.m[i * is.columns + j] * (double)a.p[k * is.rows + i];
          sum += product;
          magnitude += fabs(product);
        }
        size_t terms = LCOMM_LOWRANK_ROWS + is.rows / LCOMM_LOWRANK_ROWS;
        assert_true(is_near((double)a.q[k * is.columns + j], sum, magnitude, terms));
      }
    }
    matrices_free(&a);
  }
}

static void expand_makes_the_product_and_leaves_the_rest_in_m(void **state) {
  (void)state;
  uint64_t random = 6;
  const float share = 0.25f;
  for (size_t s = 0; s < COUNT(shapes); s++) {
    matrix_shape is = shapes[s];
    matrices a = matrices_make(is), before = matrices_make(is);
    matrices_fill(&before, KIND_GRADIENT, &random);
    matrices_copy(&a, &before);
    kernels()->expand(a.result, a.m, a.p, a.q, is.rows, is.columns, is.rank, share);
    for (size_t i = 0; i < is.rows; i++) {
      for (size_t j = 0; j < is.columns; j++) {
        size_t at = i * is.columns + j;
        double sum = 0, magnitude = 0;
        for (size_t k = 0; k < is.rank; k++) {
          double product = (double)a.p[k * is.rows + i] * (double)a.q[k * is.columns + j];
          sum += product;
          magnitude += fabs(product);
        }
        assert_true(is_near((double)a.result[at], sum, magnitude, is.rank));
        assert_true(a.m[at] == before.m[at] - share * a.result[at]);
      }
    }
    matrices_free(&a);
    matrices_free(&before);
  }
}

/* Steps */

static double norm(const float *values, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    sum += (double)values[i] * (double)values[i];
  }
  return sqrt(sum);
}

static void a_matrix_of_the_rank_or_less_is_found_in_one_step(void **state) {
  (void)state;
  uint64_t random = 10;
  for (size_t terms = 1; terms <= 4; terms++) {
    const matrix_shape is = {200, 90, 4};
    matrices a = matrices_make(is);
    size_t n = is.rows * is.columns;
    fill_with_products(a.gradient, is, terms, &random);
    lcomm_lowrank_start(a.q, is.columns, is.rank, 1);
    lowrank_step(kernels(), &a, 1.0f);
    assert_true(norm(a.m, n) < 1e-5 * norm(a.gradient, n));
    matrices_free(&a);
  }
}

static void a_matrix_that_was_zero_is_found_later(void **state) {
  (void)state;
  const matrix_shape is = {60, 40, 3};
  uint64_t random = 11;
  matrices a = matrices_make(is);
  size_t n = is.rows * is.columns;
  lcomm_lowrank_start(a.q, is.columns, is.rank, 1);
  lowrank_step(kernels(), &a, 1.0f);
  assert_true(norm(a.result, n) == 0.0);
  fill_with_products(a.gradient, is, is.rank, &random);
  for (int step = 0; step < 2; step++) {
    lowrank_step(kernels(), &a, 1.0f);
  }
  assert_true(norm(a.m, n) < 0.01 * norm(a.gradient, n));
  matrices_free(&a);
}

static void nan_or_inf_spoils_the_whole_result_and_stays_nowhere(void **state) {
  (void)state;
  const float bad[] = {SAMPLE_NAN, SAMPLE_INFINITY, -SAMPLE_INFINITY};
  const matrix_shape is = {70, 37, 2};
  const size_t n = is.rows * is.columns, places[] = {0, 36, 37 * 35 + 20, 37 * 70 - 1};
  uint64_t random = 12;
  for (size_t b = 0; b < COUNT(bad) * COUNT(places); b++) {
    size_t place = places[b % COUNT(places)];
    matrices a = matrices_make(is), before = matrices_make(is);
    matrices_fill(&before, KIND_GRADIENT, &random);
    before.gradient[place] = bad[b / COUNT(places)];
    matrices_copy(&a, &before);
    lowrank_step(kernels(), &a, 1.0f);
    for (size_t i = 0; i < n; i++) {
      assert_true(isnan(a.result[i]));
      assert_true(a.m[i] == (i == place ? 0.0f : before.m[i] + before.gradient[i]));
    }
    assert_true(lcomm_kernels_best()->f32_count_not_finite(a.q, is.rank * is.columns) > 0);
    matrices_free(&a);
    matrices_free(&before);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(project_adds_the_gradient_and_multiplies_by_q),
    cmocka_unit_test(project_without_a_gradient_leaves_m_as_it_is),
    cmocka_unit_test(project_back_multiplies_m_transposed_by_p),
    cmocka_unit_test(expand_makes_the_product_and_leaves_the_rest_in_m),
    cmocka_unit_test(a_matrix_of_the_rank_or_less_is_found_in_one_step),
    cmocka_unit_test(a_matrix_that_was_zero_is_found_later),
    cmocka_unit_test(nan_or_inf_spoils_the_whole_result_and_stays_nowhere),
};

RUN_TESTS(tests)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Matrices of low rank: orthonormal vectors. */

#include <math.h>
#include <stdbool.h>

#include "kernels/lowrank.h"
#include "tests/kernels/kernel_samples.h"
#include "tests/support/unit_tests.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void assert_orthonormal(const float *p, size_t rows, size_t rank) {
  for (size_t a = 0; a < rank; a++) {
    for (size_t b = 0; b <= a; b++) {
      double sum = 0;
      for (size_t i = 0; i < rows; i++) {
        sum += (double)p[a * rows + i] * (double)p[b * rows + i];
      }
      bool is_there = a == b && a < rows;
      if (fabs(sum - is_there) > 1e-6) {
        fail_msg("%zu rows: the product of vectors %zu and %zu is %g", rows, a, b, sum);
      }
    }
  }
}

static void vectors_become_orthonormal(void **state) {
  (void)state;
  static const size_t lengths[] = {1, 2, 3, 7, 8, 9, 64, 1000};
  static const float scales[] = {1.0f, 1e-40f, 1e-20f, 1e30f};
  uint64_t random = 7;
  for (size_t l = 0; l < COUNT(lengths); l++) {
    for (size_t rank = 1; rank <= 9; rank++) {
      for (size_t s = 0; s < COUNT(scales); s++) {
        float p[9 * 1000];
        for (size_t i = 0; i < rank * lengths[l]; i++) {
          p[i] = sample_normal(&random) * scales[s];
        }
        lcomm_lowrank_orthonormalise(p, lengths[l], rank);
        assert_orthonormal(p, lengths[l], rank);
      }
    }
  }
}

static void vectors_that_depend_on_each_other_become_orthonormal(void **state) {
  (void)state;
  enum { N = 500, RANK = 6 };
  uint64_t random = 8;
  for (size_t independent = 0; independent < RANK; independent++) {
    float p[RANK * N] = {0};
    for (size_t i = 0; i < independent * N; i++) {
      p[i] = sample_normal(&random);
    }
    for (size_t i = independent * N; independent > 0 && i < RANK * N; i++) {
      p[i] = 3.0f * p[i - independent * N] - 0.5f * p[i % N];
    }
    lcomm_lowrank_orthonormalise(p, N, RANK);
    assert_orthonormal(p, N, RANK);
  }
}

static void a_vector_that_is_not_finite_becomes_nan_and_so_do_those_after_it(void **state) {
  (void)state;
  enum { N = 20, RANK = 4 };
  const float bad[] = {SAMPLE_NAN, SAMPLE_INFINITY, -SAMPLE_INFINITY};
  for (size_t b = 0; b < COUNT(bad) * RANK; b++) {
    float p[RANK * N];
    size_t first = b % RANK;
    lcomm_lowrank_start(p, N, RANK, 9);
    p[first * N + 7] = bad[b / RANK];
    lcomm_lowrank_orthonormalise(p, N, RANK);
    assert_orthonormal(p, N, first);
    for (size_t i = first * N; i < RANK * N; i++) {
      assert_int_equal(lcomm_f32_bits(p[i]), LCOMM_F32_NAN_BITS);
    }
  }
}

static void orthonormal_vectors_stay_what_they_are(void **state) {
  (void)state;
  enum { N = 100, RANK = 4 };
  float p[RANK * N], again[RANK * N];
  lcomm_lowrank_start(p, N, RANK, 9);
  memcpy(again, p, sizeof p);
  lcomm_lowrank_orthonormalise(again, N, RANK);
  for (size_t i = 0; i < RANK * N; i++) {
    assert_true(fabsf(again[i] - p[i]) < 1e-6f);
  }
}

static void the_start_is_orthonormal_and_depends_on_the_seed_alone(void **state) {
  (void)state;
  enum { N = 77, RANK = 5 };
  float q[RANK * N], same[RANK * N], other[RANK * N];
  lcomm_lowrank_start(q, N, RANK, 1);
  lcomm_lowrank_start(same, N, RANK, 1);
  lcomm_lowrank_start(other, N, RANK, 2);
  assert_orthonormal(q, N, RANK);
  assert_memory_equal(q, same, sizeof q);
  assert_memory_not_equal(q, other, sizeof q);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(vectors_become_orthonormal),
    cmocka_unit_test(vectors_that_depend_on_each_other_become_orthonormal),
    cmocka_unit_test(a_vector_that_is_not_finite_becomes_nan_and_so_do_those_after_it),
    cmocka_unit_test(orthonormal_vectors_stay_what_they_are),
    cmocka_unit_test(the_start_is_orthonormal_and_depends_on_the_seed_alone),
};

RUN_TESTS(tests)

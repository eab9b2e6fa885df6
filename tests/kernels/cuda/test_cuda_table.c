/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The table of a CUDA device is whole. */

#include "tests/kernels/kernel_samples.h"

#include "kernels/cuda.h"
#include "kernels/cuda/cuda_launch.h"
#include "tests/support/unit_tests.h"

static void no_kernel_is_missing(void **state) {
  (void)state;
  void *functions[sizeof lcomm_cuda_kernels_table / sizeof(void *)];
  assert_int_equal(sizeof functions, sizeof lcomm_cuda_kernels_table);
  memcpy(functions, &lcomm_cuda_kernels_table, sizeof functions);
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    assert_non_null(functions[i]);
  }
}

static void kernels_of_one_type_are_not_mixed_up(void **state) {
  (void)state;
  const lcomm_cuda_kernels *table = &lcomm_cuda_kernels_table;
  float values[] = {1, SAMPLE_NAN, -3}, residual[] = {2, 0, 4};
  uint64_t found = 0;
  assert_int_equal(table->count_not_finite(values, 3, &found, NULL), 0);
  assert_true(found == 1);
  assert_int_equal(table->fold(values, residual, residual, 3, NULL), 0);
  assert_true(values[0] == 3 && values[2] == 1 && residual[0] == 0 && residual[2] == 0);
  double sums[] = {0.5, 1};
  assert_int_equal(table->add_to_f64(sums, values, 1, NULL), 0);
  assert_true(sums[0] == 3.5 && sums[1] == 1);
  float momentum[] = {2}, gradient[] = {5};
  assert_int_equal(table->momentum(0.5f, momentum, momentum, gradient, 1, NULL), 0);
  assert_true(momentum[0] == 6 && gradient[0] == 6);
  assert_int_equal(table->mean(0.5f, momentum, 2.0f, gradient, momentum, 1, NULL), 0);
  assert_true(momentum[0] == 15 && gradient[0] == 6);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_kernel_is_missing),
    cmocka_unit_test(kernels_of_one_type_are_not_mixed_up),
};
RUN_TESTS(tests)

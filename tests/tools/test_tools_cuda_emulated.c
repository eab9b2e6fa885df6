/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* cuda_bench with the kernels of CUDA on an emulated device: all that it launches
 * gives the bytes of the host's codecs. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/emulated/emulated_device.h"
#include "tools/cuda/cuda_run.h"

static void measure(uint64_t count) {
  static lcomm_gpu_results results;
  lcomm_gpu_options options = {.count = count, .samples = 1, .launches = 2};
  emulated_setup setup = {.devices = 1, .kernels = &lcomm_cuda_kernels_table};
  const lcomm_device_table *table = emulated_begin(&setup);
  assert_non_null(table);
  bool good = lcomm_gpu_bench_run(&options, table, NULL, &results);
  assert_int_equal(emulated_end(), 0); /* all memory and streams were given back */
  assert_true(good);
  assert_int_equal(results.figure_count, lcomm_gpu_case_count);
  for (size_t i = 0; i < results.figure_count; i++) {
    assert_string_equal(results.figures[i].why, "");
  }
}

static void kernels_make_the_bytes_of_the_host(void **state) {
  (void)state;
  measure(40000);
}

static void odd_counts_do_too(void **state) {
  (void)state;
  static const uint64_t counts[] = {1, 127, 129, 4097};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    measure(counts[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_make_the_bytes_of_the_host),
                                     cmocka_unit_test(odd_counts_do_too)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The properties of kernels on an emulated device, whose streams take their time. */

#include "tests/kernels/cuda/kernel_properties.h"
#include "tests/kernels/cuda/lowrank_properties.h"
#include "tests/kernels/cuda/step_properties.h"
#include "tests/kernels/cuda/topk_properties.h"
#include "tests/kernels/cuda/value_properties.h"
#include "tests/support/emulated/emulated_device.h"

static emulated_setup setup = {.devices = 1, .kernels = &lcomm_cuda_kernels_table};

static int begin(void **state) {
  device = emulated_begin(&setup);
  return device->use(0) + open_stream(state);
}

/* Whatever a test has not given back fails it. */
static int end(void **state) {
  (void)close_stream(state);
  int left = emulated_end();
  if (left > 0) {
    print_error("%d objects were left\n", left);
  }
  return left;
}

#define ON_DEVICE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {KERNEL_PROPERTIES(ON_DEVICE), VALUE_PROPERTIES(ON_DEVICE),
                                     TOPK_PROPERTIES(ON_DEVICE), STEP_PROPERTIES(ON_DEVICE),
                                     LOWRANK_PROPERTIES(ON_DEVICE)};
  const struct CMUnitTest hurried[] = {ON_DEVICE(streams_at_once_give_the_same_bytes)};
  long_count = 1 << 15;
  int failed = cmocka_run_group_tests_name("in no hurry", tests, prepare_kernels, forget_kernels);
  setup.seed = 20;
  return failed +
         cmocka_run_group_tests_name("with pauses", hurried, prepare_kernels, forget_kernels);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The kernels of CUDA's table on a device of this host.
 *   cuda_kernels [LONG [PATTERN]]
 * LONG: elements of a long array, fewer under a tool that makes the device slow;
 * PATTERN: only tests whose name fits, because after some errors of a device all that
 * come later fail as well. */

#include "tests/kernels/cuda/kernel_properties.h"
#include "tests/kernels/cuda/lowrank_properties.h"
#include "tests/kernels/cuda/step_properties.h"
#include "tests/kernels/cuda/topk_properties.h"
#include "tests/kernels/cuda/value_properties.h"

#define ON_DEVICE(test) cmocka_unit_test_setup_teardown(test, open_stream, close_stream)

int main(int argc, char **argv) {
  lcomm_why why;
  const struct CMUnitTest tests[] = {KERNEL_PROPERTIES(ON_DEVICE), VALUE_PROPERTIES(ON_DEVICE),
                                     TOPK_PROPERTIES(ON_DEVICE), STEP_PROPERTIES(ON_DEVICE),
                                     LOWRANK_PROPERTIES(ON_DEVICE)};
  device = lcomm_device_get(&why);
  if (!device) {
    printf("SKIP cuda_kernels: %s\n", why.text);
    return 0;
  }
  long_count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1 << 21;
  if (argc > 2) {
    cmocka_set_test_filter(argv[2]);
  }
  return device->use(0) + cmocka_run_group_tests(tests, prepare_kernels, forget_kernels);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 8 */

/* Buffers on a real device, which all ranks share: see device_steps.h. */

#include "tests/tensor/device_steps.h"

int main(int argc, char **argv) {
  static const mpi_property properties[] = {STEP_PROPERTIES};
  return real_device_main(&argc, &argv, "cuda_steps", WITH_COUNT(properties));
}

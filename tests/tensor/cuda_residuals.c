/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 8 */

/* Residuals with buffers on a real device, which all ranks share: see device_residuals.h. */

#include "tests/tensor/device_residuals.h"

int main(int argc, char **argv) {
  static const mpi_property properties[] = {RESIDUAL_PROPERTIES};
  return real_device_main(&argc, &argv, "cuda_residuals", WITH_COUNT(properties));
}

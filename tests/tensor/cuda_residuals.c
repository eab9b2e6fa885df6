/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 8 */

/* Residuals with buffers on a real device, which all ranks share: see device_residuals.h. */

#include "tests/tensor/device_residuals.h"

#include <stdio.h>

int main(int argc, char **argv) {
  static const mpi_property properties[] = {RESIDUAL_PROPERTIES};
  char why[LCOMM_DEVICE_WHY_MAX];
  device = lcomm_device_get(why);
  if (!device) {
    printf("SKIP cuda_residuals: %s\n", why);
    return 77;
  }
  device->use(0);
  return mpi_property_main_threads(&argc, &argv, properties,
                                   sizeof(properties) / sizeof(properties[0]));
}

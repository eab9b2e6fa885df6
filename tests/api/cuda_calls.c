/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 8 */

/* Buffers on a real device, which all ranks share: see device_calls.h. */

#include "tests/api/device_calls.h"

#include <stdio.h>

int main(int argc, char **argv) {
  static const mpi_property properties[] = {CALL_PROPERTIES};
  char why[LCOMM_DEVICE_WHY_MAX];
  device = lcomm_device_get(why);
  if (!device) {
    printf("SKIP cuda_calls: %s\n", why);
    return 77;
  }
  device->use(0);
  return mpi_property_main_threads(&argc, &argv, properties,
                                   sizeof(properties) / sizeof(properties[0]));
}

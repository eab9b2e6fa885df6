/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 8 */

/* Buffers on a real device, which all ranks share: see device_calls.h. */

#include "tests/api/device_calls.h"

int main(int argc, char **argv) {
  static const mpi_property properties[] = {CALL_PROPERTIES};
  return real_device_main(&argc, &argv, "cuda_calls", WITH_COUNT(properties));
}

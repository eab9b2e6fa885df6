/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 */

/* Uneven parts and residuals in streams of a real device: see device_streams.h. */

#include "tests/api/device_streams.h"

int main(int argc, char **argv) {
  static const mpi_property properties[] = {STREAM_PROPERTIES};
  return real_device_main(&argc, &argv, "cuda_streams", WITH_COUNT(properties));
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 */

/* Residuals with buffers on an emulated device, whose streams pause at random: see
 * device_residuals.h. */

#include "tests/tensor/device_residuals.h"

#include "tests/support/emulated/emulated_device.h"

/* Whatever the properties before it made on the device, they destroyed. The numbers that streams
 * wait for stay to the end of the process. */
static void nothing_is_left_on_the_device(void) {
  int left = emulated_end();
  require(left == 1, "%d pieces of memory, streams and events are left", left);
}

int main(int argc, char **argv) {
  static const mpi_property properties[] = {
      RESIDUAL_PROPERTIES{"nothing_is_left_on_the_device", nothing_is_left_on_the_device},
  };
  emulated_setup setup = {
      .devices = 2, .kernels = &lcomm_cuda_kernels_table, .seed = 11, .pause_us_max = 50};
  device = emulated_begin(&setup);
  lcomm_device_replace(device);
  return mpi_property_main_threads(&argc, &argv, properties,
                                   sizeof(properties) / sizeof(properties[0]));
}

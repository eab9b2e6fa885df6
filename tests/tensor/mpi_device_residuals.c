/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 */

/* Residuals with buffers on an emulated device, whose streams pause at random: see
 * device_residuals.h. */

#include "tests/tensor/device_residuals.h"

#include "tests/engine/on_emulated_device.h"

static const mpi_property properties[] = {
    RESIDUAL_PROPERTIES,
    PROPERTY(nothing_is_left_on_the_device),
};

int main(int argc, char **argv) {
  return churning_device_main(&argc, &argv, "12", WITH_COUNT(properties));
}

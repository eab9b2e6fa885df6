/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 */

/* Buffers on an emulated device, whose streams pause at random: see device_steps.h. */

#include "tests/tensor/device_steps.h"

#include "tests/engine/on_emulated_device.h"

static const mpi_property properties[] = {
    STEP_PROPERTIES,
    PROPERTY(nothing_is_left_on_the_device),
};

int main(int argc, char **argv) {
  return churning_device_main(&argc, &argv, "14", WITH_COUNT(properties));
}

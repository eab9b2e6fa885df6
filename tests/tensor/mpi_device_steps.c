/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 */

/* Buffers on an emulated device, whose streams pause at random: see device_steps.h. */

#include "tests/tensor/device_steps.h"

#include "tests/engine/on_emulated_device.h"

static void nothing_is_left_on_the_device(void) {
  require_nothing_left_on_device();
}

static const mpi_property properties[] = {
    STEP_PROPERTIES,
    PROPERTY(nothing_is_left_on_the_device),
};

int main(int argc, char **argv) {
  setenv("EMULATED_CHURN", "14", 0); /* another thread of the program gets and frees memory */
  return pausing_device_main(&argc, &argv, WITH_COUNT(properties));
}

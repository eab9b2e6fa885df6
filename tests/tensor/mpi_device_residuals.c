/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 */

/* Residuals with buffers on an emulated device, whose streams pause at random: see
 * device_residuals.h. */

#include "tests/tensor/device_residuals.h"

#include "tests/engine/on_emulated_device.h"

/* But for the numbers that streams wait for, which stay to the end of the process. */
static void nothing_is_left_on_the_device(void) {
  require_left_on_device(1);
}

static const mpi_property properties[] = {
    RESIDUAL_PROPERTIES,
    PROPERTY(nothing_is_left_on_the_device),
};
RUN_PROPERTIES(pausing_device_main, properties)

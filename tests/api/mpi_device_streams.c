/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 */

/* Uneven parts and residuals in streams of an emulated device, which pause at random: see
 * device_streams.h. */

#include "tests/api/device_streams.h"

#include "tests/engine/on_emulated_device.h"

static const mpi_property properties[] = {
    STREAM_PROPERTIES,
    PROPERTY(nothing_is_left_on_the_device),
};
RUN_PROPERTIES(pausing_device_main, properties)

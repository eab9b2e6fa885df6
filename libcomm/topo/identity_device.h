/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOPO_IDENTITY_DEVICE_H
#define LCOMM_TOPO_IDENTITY_DEVICE_H

/* A rank's device, from what CUDA and NVML say. */

#include "libcomm/device/device.h"
#include "libcomm/topo/gpus.h"

/* The device that is current according to `table`, with its links in `gpus`;
 * none when the table cannot tell. */
void lcomm_identity_take_device(lcomm_identity *identity, const lcomm_device_table *table,
                                const lcomm_gpus *gpus);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DEVICE_MODULE_H
#define LCOMM_DEVICE_MODULE_H

/* How the module with a device's table is found and checked. What is wrong is said
 * in `why`, with what to do about it. */

#include "libcomm/device/device.h"

/* What is opened: "libcomm-cuda.so". Tests put another name here before the first
 * lcomm_device_get(). */
extern const char *lcomm_device_library;

/* Open the module, beside the object that this code is in or where the loader
 * looks, for the life of the process. NULL: why. */
const struct lcomm_device_module *lcomm_device_module_open(lcomm_why *why);

/* The table of a module that fits this library and sees a device. NULL: why. */
const lcomm_device_table *lcomm_device_module_check(const struct lcomm_device_module *module,
                                                    lcomm_why *why);

#endif

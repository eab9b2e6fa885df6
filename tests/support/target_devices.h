/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_DEVICES_H
#define LCOMM_TESTS_SUPPORT_TARGET_DEVICES_H

/* Fuzz targets for what Linux and NVML tell of devices, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* Lines ended by zeros; each is read as all that stands in sysfs, as a PCI id and as a
 * UUID. */
void lcomm_fuzz_sysfs(const uint8_t *data, size_t size);

/* What NVML answers, call by call: a byte that is 0 for success, then the answer. */
void lcomm_fuzz_nvml(const uint8_t *data, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOPO_SYSFS_TEXT_H
#define LCOMM_TOPO_SYSFS_TEXT_H

/* What stands in the files and links of sysfs: any text is read, or is nothing. */

#include "libcomm/topo/sysfs.h"

/* A number in 0 .. 2^40 at the beginning of a line, -1 for anything else. */
int64_t lcomm_sysfs_number(const char *line);

/* Mbit/s of "100 Gb/sec (4X EDR)" or "2.5 Gb/sec (1X SDR)", -1 for anything else. */
int64_t lcomm_sysfs_rate(const char *line);

/* Of the absolute path of a device: copy the part from its root complex down,
 * "pci0000:16/...", and return the last PCI id in it; a virtio device, for one, hangs
 * below its own. 0 and "" where there is no root complex. */
lcomm_pci lcomm_sysfs_path(const char *path, char place[LCOMM_SYSFS_PATH_MAX]);

/* A name as far as there is room, what is not visible ASCII replaced by '?'. */
void lcomm_sysfs_name(const char *text, char name[LCOMM_NIC_NAME_MAX]);

#endif

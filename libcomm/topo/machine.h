/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOPO_MACHINE_H
#define LCOMM_TOPO_MACHINE_H

/* What this host has, for people. */

#include "libcomm/topo/gpus.h"
#include "libcomm/topo/sysfs.h"

/* Processors, NUMA nodes, GPUs or why there are none, network interfaces, and
 * what lies between GPUs and interfaces. Every line begins with '#', so that it
 * may stand in a topology to load. Returns the length needed without the
 * terminator and writes at most size bytes. */
size_t lcomm_machine_print(const char *sysfs_root, const char *host, const lcomm_gpus *gpus,
                           char *text, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_COMMON_TOOL_CACHE_H
#define LCOMM_TOOLS_COMMON_TOOL_CACHE_H

/* How large the caches are that processors share. */

#include <stdint.h>

/* Where Linux describes processors. */
#define TOOL_CACHE_FOLDER "/sys/devices/system/cpu"

/* Bytes of all caches of the third level that the folder describes, each counted once however many
 * processors share it; 0: there are none, or it is not known. sysconf(_SC_LEVEL3_CACHE_SIZE) is no
 * answer: it asks the processor, which names the caches of the whole chip (384 MiB) where a virtual
 * machine has a part of them (32 MiB). */
uint64_t tool_cache_size(const char *folder);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_INFO_INFO_BUILD_H
#define LCOMM_TOOLS_INFO_INFO_BUILD_H

#include <stdint.h>

/* What this build can do on this machine. */
void info_print_build(void);

/* Processors of each rank's own in the ranks of MPI_COMM_WORLD, in percent, as this rank
 * finds it; 0 when it cannot be found. Collective. */
uint64_t info_processors_share(void);

/* What LCOMM_PROGRESS=auto comes to with that share, on so many ranks. */
void info_print_progress(uint64_t share, int ranks);

#endif

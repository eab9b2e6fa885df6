/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_INFO_INFO_RANKS_H
#define LCOMM_TOOLS_INFO_INFO_RANKS_H

/* The processes that libcomm-info was started with: those of MPI_COMM_WORLD, or in a build
 * without MPI itself alone. */

#include <stddef.h>

#include "libcomm/include/libcomm.h"

/* Before and after all others. */
void info_ranks_begin(int *argc, char ***argv);
void info_ranks_end(void);

int info_rank(void);
int info_ranks(void);
int info_local_rank(void); /* among those of this host */

/* `size` bytes of each, in the order of the ranks. */
void info_gather(const void *mine, void *all, size_t size);

/* A communicator of them; as lcomm_create_mpi(). */
lcomm_status info_ranks_join(const lcomm_config *config, lcomm_comm **comm);

/* End all of them at once, also one that does not answer. Returns where there is no MPI. */
void info_ranks_abort(int code);

/* MPI in words, or that there is none. The text is static. */
const char *info_mpi_name(void);

#endif

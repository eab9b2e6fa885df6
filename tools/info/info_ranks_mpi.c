/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/info/info_ranks.h"

#include <mpi.h>
#include <stdio.h>

#include "libcomm/include/libcomm_mpi.h"

void info_ranks_begin(int *argc, char ***argv) {
  MPI_Init(argc, argv);
}

void info_ranks_end(void) {
  MPI_Finalize();
}

int info_rank(void) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int info_ranks(void) {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

int info_local_rank(void) {
  MPI_Comm host = MPI_COMM_NULL;
  int local = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &local);
  MPI_Comm_free(&host);
  return local;
}

void info_gather(const void *mine, void *all, size_t size) {
  MPI_Allgather(mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, MPI_COMM_WORLD);
}

lcomm_status info_ranks_join(const lcomm_config *config, lcomm_comm **comm) {
  return lcomm_create_mpi(MPI_COMM_WORLD, config, comm);
}

void info_ranks_abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
}

const char *info_mpi_name(void) {
  static char text[256];
  snprintf(text, sizeof(text), "%s, built for %s", lcomm_mpi_running(), lcomm_mpi_built_for());
  return text;
}

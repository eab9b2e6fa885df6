/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_NCCL_CONTROL_FILE_H
#define LCOMM_TESTS_NCCL_CONTROL_FILE_H

/* The control file of a program's ranks. Included by one program each. */

#include <stdio.h>

#include "tests/interpose/nccl/nccl_float_sums.h"

enum { SUMS_BETWEEN_LOOKS = 16 };

static char control_path[64];

/* Ranks of one launcher share the file. Before the first call. */
static inline void name_control_file(void) {
  snprintf(control_path, sizeof(control_path), "/tmp/lcomm-nccl-control-%d", (int)getppid());
  setenv("LCOMM_INTERPOSE_CONTROL", control_path, 1);
}

/* All ranks see the file change before they go on. */
static inline void say(const char *words) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (mpi_rank == 0) {
    FILE *file = fopen(control_path, "w");
    require(file && fprintf(file, "%s\n", words) > 0, "no control file");
    fclose(file);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static inline void the_file_is_removed(void) {
  if (mpi_rank == 0) {
    unlink(control_path);
  }
}

#endif

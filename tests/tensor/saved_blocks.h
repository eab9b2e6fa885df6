/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TENSOR_SAVED_BLOCKS_H
#define LCOMM_TESTS_TENSOR_SAVED_BLOCKS_H

/* The saved state of all ranks in the memory of each. */

#include <stdlib.h>

#include "tests/support/mpi_property.h"

enum { BLOCKS_MAX = 8 };

/* One after the other; free them. */
static inline uint8_t *write_blocks(lcomm_comm *comm, size_t *size) {
  int sizes_there[BLOCKS_MAX], places[BLOCKS_MAX] = {0};
  size_t own = 0;
  require(lcomm_state_size(comm, &own) == LCOMM_OK, "%s", lcomm_last_error(comm));
  uint8_t *block = malloc(own);
  require(lcomm_state_write(comm, block, own) == LCOMM_OK, "%s", lcomm_last_error(comm));
  int mine = (int)own;
  MPI_Allgather(&mine, 1, MPI_INT, sizes_there, 1, MPI_INT, MPI_COMM_WORLD);
  *size = 0;
  for (int i = 0; i < mpi_size; i++) {
    places[i] = (int)*size;
    *size += (size_t)sizes_there[i];
  }
  uint8_t *all = malloc(*size);
  MPI_Allgatherv(block, mine, MPI_BYTE, all, sizes_there, places, MPI_BYTE, MPI_COMM_WORLD);
  free(block);
  return all;
}

static inline void read_blocks(lcomm_comm *comm, const uint8_t *bytes, size_t size) {
  require(lcomm_state_read(comm, bytes, size) == LCOMM_OK, "%s", lcomm_last_error(comm));
}

#endif

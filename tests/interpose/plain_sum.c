/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A program that knows nothing of libcomm: rank 0 prints a hash of a sum, and its arguments. */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 100000 };

static float values[COUNT];

int main(int argc, char **argv) {
  int rank = 0;
  uint32_t hash = 2166136261u, bits = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < COUNT; i++) {
    values[i] = (float)((i * 7 + rank * 31) % 1000);
  }
  MPI_Allreduce(MPI_IN_PLACE, values, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < COUNT; i++) {
    memcpy(&bits, &values[i], sizeof(bits));
    hash = (hash ^ bits) * 16777619u;
  }
  if (rank == 0) {
    printf("%08x", hash);
    for (int i = 1; i < argc; i++) {
      printf(" %s", argv[i]);
    }
    printf("\n");
  }
  MPI_Finalize();
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors
 *
 * All-reduce in a program that uses MPI: mpirun -np 4 ./sum_mpi */
#include <libcomm_mpi.h>

#include <stdio.h>

enum { COUNT = 1 << 20 };
static float values[COUNT];

static int run(void) {
  lcomm_config config = LCOMM_CONFIG_INIT; /* the policy is LCOMM_POLICY, else exact */
  lcomm_comm *comm = NULL;
  if (lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm) != LCOMM_OK) {
    fprintf(stderr, "%s\n", lcomm_last_error(NULL));
    return 1;
  }
  int rank = lcomm_rank(comm), size = lcomm_size(comm);
  for (int i = 0; i < COUNT; i++) {
    values[i] = (float)(rank + 1);
  }
  lcomm_status status = lcomm_allreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM);
  if (status != LCOMM_OK) {
    fprintf(stderr, "%s\n", lcomm_last_error(comm)); /* who, what, why, and what to do */
  } else if (rank == 0) {
    printf("sum over %d ranks: %g, expected %d\n", size, (double)values[0], size * (size + 1) / 2);
  }
  lcomm_destroy(comm);
  return status == LCOMM_OK ? 0 : 1;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int failed = run();
  MPI_Finalize();
  return failed;
}

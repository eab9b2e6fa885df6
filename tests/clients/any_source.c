/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A master and workers as many programs have them: rank 0 takes whatever comes first, from
 * any source with any tag; then each worker takes whatever comes from rank 0. Prints what
 * was not as sent, and how long MPI_Init took. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TAG = 7 };

static int wrong;

static void receive(int source, double want) {
  double value = 0;
  int count = 0;
  MPI_Status status;
  int code = MPI_Recv(&value, 1, MPI_DOUBLE, source, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_DOUBLE, &count);
  want = want < 0 ? status.MPI_SOURCE : want;
  if (code != MPI_SUCCESS || status.MPI_TAG != TAG || count != 1 || value != want) {
    printf("wrong: tag %d, %d numbers, %g from rank %d\n", status.MPI_TAG, count, value,
           status.MPI_SOURCE);
    wrong = 1;
  }
}

static void send(int to, double value) {
  MPI_Send(&value, 1, MPI_DOUBLE, to, TAG, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank > 0) {
    send(0, rank);
    receive(0, 42);
  }
  for (int i = 1; i < size && rank == 0; i++) {
    receive(MPI_ANY_SOURCE, -1);
  }
  for (int i = 1; i < size && rank == 0; i++) {
    send(i, 42);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    puts("all have come");
  }
  MPI_Finalize();
  return wrong;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 5 8 */

/* Messages of one thread while another one of the process is in a sum that is taken. */

#include <pthread.h>
#include <string.h>

#include "tests/support/interposer_property.h"

enum { STEPS = 15, SIZE = 600000, COUNT = 20000, TAG = 4 };

static unsigned char out[SIZE], in[SIZE];
static float values[COUNT];
static MPI_Comm own; /* of the threads with messages */
static bool right;

static void before(void) {
  set_default("LCOMM_POLICY", "net=none min=0");
}

static void *exchange(void *unused) {
  int to = (mpi_rank + 1) % mpi_size, from = (mpi_rank + mpi_size - 1) % mpi_size;
  (void)unused;
  right = true;
  for (int step = 0; step < STEPS; step++) {
    memset(out, mpi_rank + step, SIZE);
    MPI_Sendrecv(out, SIZE, MPI_BYTE, to, TAG, in, SIZE, MPI_BYTE, from, TAG, own,
                 MPI_STATUS_IGNORE);
    right &= in[0] == (unsigned char)(from + step) && in[SIZE - 1] == in[0];
  }
  return NULL;
}

static void sum(int steps) {
  for (int step = 0; step < steps; step++) {
    for (int i = 0; i < COUNT; i++) {
      values[i] = (float)(mpi_rank + step);
    }
    MPI_Allreduce(MPI_IN_PLACE, values, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    float want = (float)(mpi_size * (mpi_size - 1) / 2 + mpi_size * step);
    require(values[0] == want && values[COUNT - 1] == want, "step %d: %g, not %g", step,
            (double)values[0], (double)want);
  }
}

static bool has_threads(void) {
  if (mpi_threads < MPI_THREAD_MULTIPLE) {
    skip_property("that needs MPI_THREAD_MULTIPLE");
    return false;
  }
  return true;
}

static void threads_exchange_messages_while_others_sum(void) {
  pthread_t thread;
  PMPI_Comm_dup(MPI_COMM_WORLD, &own);
  pthread_create(&thread, NULL, exchange, NULL);
  sum(STEPS);
  pthread_join(thread, NULL);
  require(right, "a message is not what was sent");
  PMPI_Comm_free(&own);
}

/* Rank 0 sums when its messages are over; the others' threads are in the sum by then. */
static void a_rank_may_sum_after_its_messages(void) {
  pthread_t thread;
  PMPI_Comm_dup(MPI_COMM_WORLD, &own);
  if (mpi_rank == 0) {
    exchange(NULL);
    sum(STEPS);
  } else {
    pthread_create(&thread, NULL, exchange, NULL);
    sum(STEPS);
    pthread_join(thread, NULL);
  }
  require(right, "a message is not what was sent");
  PMPI_Comm_free(&own);
}

static const mpi_property properties[] = {
    PROPERTY_WHERE(has_threads, threads_exchange_messages_while_others_sum),
    PROPERTY_WHERE(has_threads, a_rank_may_sum_after_its_messages),
};
RUN_INTERPOSER_PROPERTIES_THREADS(before, MPI_THREAD_MULTIPLE, properties)

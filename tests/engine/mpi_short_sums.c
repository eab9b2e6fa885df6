/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* A rank that was behind once takes in, while it waits, what the others have sent for the
 * next sum. That one is still done in one go, and so are those after it: else every rank
 * looks in vain for messages that come late because others look in vain. */

#include "tests/engine/progress_model.h"

enum { SUMS = 50, COUNT_MAX = 500, MOVES = 10 };

static const lcomm_transport_table *real;
static unsigned received; /* messages that were asked for one by one */

static lcomm_status count_receive(lcomm_transport *transport, int peer, uint32_t tag, void *bytes,
                                  size_t capacity, lcomm_transfer *transfer) {
  received++;
  return real->receive(transport, peer, tag, bytes, capacity, transfer);
}

/* All links of a host are one transport. */
static void count_receives(lcomm_comm *comm) {
  static lcomm_transport_table table;
  lcomm_transport *link = lcomm_comm_link(comm, (mpi_rank + 1) % mpi_size);
  real = link->table;
  table = *real;
  table.receive = count_receive;
  link->table = &table;
}

/* The last rank comes when the messages of all others are there and were taken in. A fingerprint
 * that came before its operation, from a rank that waits for long, is looked at step by step. */
static void sum_last(lcomm_comm *comm, double *values, uint64_t count) {
  lcomm_request request = {0};
  bool last = mpi_rank == mpi_size - 1;
  if (!last) {
    require_fine(comm,
                 lcomm_iallreduce(comm, values, values, count, LCOMM_FLOAT64, LCOMM_SUM, &request));
    for (int i = 0, done = 0; i < MOVES; i++) { /* until its messages have left */
      require_fine(comm, lcomm_test(comm, &request, &done));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    require_fine(comm, lcomm_wait(comm, &request));
    return;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  lcomm_links_progress(&comm->links);
  require_fine(comm, lcomm_control_receive(comm));
  bool early = comm->fingerprints.early_count > 0;
  received = 0;
  require_fine(comm, lcomm_allreduce(comm, values, values, count, LCOMM_FLOAT64, LCOMM_SUM));
  require(received == 0 || early, "sum of %d elements: %u messages were asked for one by one",
          (int)count, received);
}

static void a_sum_whose_messages_were_taken_in_before_is_done_in_one_go(void) {
  lcomm_comm *comm = make_nodes(1, "net=none", "shm", LCOMM_PROGRESS_CALLS, 20);
  double values[COUNT_MAX];
  if (!comm) {
    return;
  }
  count_receives(comm);
  for (int i = 0; i < SUMS; i++) {
    uint64_t count = (uint64_t)(1 + i * (COUNT_MAX - 1) / (SUMS - 1));
    double wanted = (double)(mpi_size * (mpi_size - 1) / 2 + mpi_size * i);
    for (uint64_t e = 0; e < count; e++) {
      values[e] = mpi_rank + i;
    }
    sum_last(comm, values, count);
    require(values[0] == wanted && values[count - 1] == wanted, "sum %d: %g and %g, not %g", i,
            values[0], values[count - 1], wanted);
  }
  require_fine(NULL, lcomm_destroy(comm));
}

/* As long as another, and of another plan: the header tells. */
static void short_sums_of_other_operations_are_an_error_on_every_rank(void) {
  lcomm_comm *comm = make_nodes(1, "net=none", "shm", LCOMM_PROGRESS_CALLS, 20);
  double value = 1;
  if (!comm) {
    return;
  }
  require_fine(comm, lcomm_allreduce(comm, &value, &value, 1, LCOMM_FLOAT64, LCOMM_SUM));
  MPI_Barrier(MPI_COMM_WORLD); /* an error may come before a rank has its first result */
  lcomm_op op = mpi_rank == 0 ? LCOMM_MAX : LCOMM_SUM;
  lcomm_status status = lcomm_allreduce(comm, &value, &value, 1, LCOMM_FLOAT64, op);
  require(status == LCOMM_ERR_MISMATCH, "%s: %s", lcomm_status_name(status),
          lcomm_last_error(comm));
  MPI_Barrier(MPI_COMM_WORLD);
  lcomm_destroy(comm);
}

static const mpi_property properties[] = {
    PROPERTY(a_sum_whose_messages_were_taken_in_before_is_done_in_one_go),
    PROPERTY(short_sums_of_other_operations_are_an_error_on_every_rank),
};
RUN_PROPERTIES(mpi_property_main, properties)

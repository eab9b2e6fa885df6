/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* MPI_Request_free on a sum in flight: the handle is gone at once, whoever is late; the sum
 * ends for all ranks, and later calls on the communicator come after it. */

#include "tests/interpose/interposer_init.h"
#include "tests/interpose/interposer_sums.h"

enum { COUNT = 30000, MANY = 100, TAG = 9 };

static void before(void) {
  set_default("LCOMM_POLICY", "net=none min=0");
}

/* Plain Open MPI refuses to free requests of collective calls that are active. */
static bool can_free(void) {
  if (!interposer_is_on() || mpi_size == 1) {
    skip_property("the sums are MPI's, which does not free their requests");
    return false;
  }
  return true;
}

static void free_now(MPI_Request *request) {
  int code = MPI_Request_free(request);
  require(code == MPI_SUCCESS, "MPI_Request_free returns %d", code);
  require(*request == MPI_REQUEST_NULL, "the handle is left");
}

/* The other ranks come to their call when rank 0 has freed its request. */
static void tell_the_others(void) {
  for (int i = 1; i < mpi_size; i++) {
    MPI_Send(NULL, 0, MPI_BYTE, i, TAG, MPI_COMM_WORLD);
  }
}

static void wait_for_rank_0(void) {
  MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* What comes later on the communicator is over when the freed sum is. */
static void sum_once_more(MPI_Comm comm) {
  float one = 1;
  MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_FLOAT, MPI_SUM, comm);
  require(one == (float)mpi_size, "the next sum is %g", (double)one);
}

static void freeing_waits_for_nobody(void) {
  MPI_Request request;
  if (!can_free()) {
    return;
  }
  sum_call call = new_call(COUNT, 1);
  if (mpi_rank == 0) {
    start(&call, MPI_COMM_WORLD, &request);
    free_now(&request);
    tell_the_others();
  } else {
    wait_for_rank_0();
    start(&call, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  sum_once_more(MPI_COMM_WORLD);
  end(&call, "freed on rank 0");
}

static void many_freed_sums_end_in_order(void) {
  MPI_Request request;
  static sum_call calls[MANY];
  if (!can_free()) {
    return;
  }
  for (int i = 0; i < MANY; i++) {
    calls[i] = new_call(1 + i * 10, i);
    start(&calls[i], MPI_COMM_WORLD, &request);
    free_now(&request);
  }
  sum_once_more(MPI_COMM_WORLD);
  for (int i = 0; i < MANY; i++) {
    end(&calls[i], "one of many");
  }
}

static void the_communicator_may_go_with_freed_sums(void) {
  MPI_Comm comm;
  MPI_Request request;
  if (!can_free()) {
    return;
  }
  sum_call call = new_call(COUNT, 2);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  start(&call, comm, &request);
  free_now(&request);
  MPI_Comm_free(&comm);
  PMPI_Barrier(MPI_COMM_WORLD);
  end_unseen(&call, "communicator freed");
}

/* ---------------------------------------------------------------- persistent */

/* The communicator goes when its sums are over. */
static void persistent_sums_are_freed_alike(void) {
  if (!can_free()) {
    return;
  }
  for (int round = 0; round < 5; round++) {
    MPI_Comm comm;
    MPI_Request request;
    sum_call call = new_call(COUNT, round);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    ALLREDUCE_INIT(call.send, call.receive, COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL,
                   &request);
    if (mpi_rank == 0) {
      MPI_Start(&request);
      free_now(&request);
      tell_the_others();
    } else {
      wait_for_rank_0();
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      free_now(&request);
    }
    MPI_Comm_free(&comm);
    end_unseen(&call, "persistent");
  }
}

/* -------------------------------------------------------------------- the end */

static float last[2][COUNT];

static void mpi_ends_with_freed_sums(void) {
  MPI_Request request;
  if (!can_free()) {
    return;
  }
  MPI_Iallreduce(last[0], last[1], COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  free_now(&request);
}

static const mpi_property properties[] = {
    PROPERTY(freeing_waits_for_nobody),
    PROPERTY(many_freed_sums_end_in_order),
    PROPERTY(the_communicator_may_go_with_freed_sums),
    PROPERTY(persistent_sums_are_freed_alike),
    PROPERTY(mpi_ends_with_freed_sums),
};
RUN_INTERPOSER_PROPERTIES(before, properties)

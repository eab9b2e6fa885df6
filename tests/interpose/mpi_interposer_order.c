/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 5 */

/* Calls of the MPI interposer that do not block, and other calls: in order on each
 * communicator, and independent between them. Whose error handler is asked. */

#include <sched.h>
#include <unistd.h>

#include "tests/interpose/interposer_sums.h"

static void before(void) {
  set_default("LCOMM_POLICY", "net=none min=0");
}

/* A request that is over: so are those before it. */
static void thirty_in_flight_end_in_order(void) {
  enum { CALLS = 30 };
  sum_call calls[CALLS];
  MPI_Request requests[CALLS];
  for (int i = 0; i < CALLS; i++) {
    calls[i] = new_call(i % 3 == 0 ? 20000 : 5 + i, i);
    start(&calls[i], MPI_COMM_WORLD, &requests[i]);
  }
  for (int all = 0; !all; sched_yield()) {
    int over = 0;
    all = 1;
    for (int i = CALLS - 1; i >= 0; i--) {
      int later = over;
      MPI_Request_get_status(requests[i], &over, MPI_STATUS_IGNORE);
      require(!interposer_is_on() || !later || over, "call %d ends after the next one", i);
      all &= over;
    }
  }
  MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < CALLS; i++) {
    end(&calls[i], "one of thirty");
  }
}

static void communicators_may_be_used_in_different_order(void) {
  enum { COMMS = 3 };
  MPI_Comm comms[COMMS];
  MPI_Request requests[COMMS];
  sum_call calls[COMMS];
  for (int i = 0; i < COMMS; i++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    calls[i] = new_call(20000, i);
  }
  for (int i = 0; i < COMMS; i++) {
    int k = (i + mpi_rank) % COMMS;
    start(&calls[k], comms[k], &requests[k]);
  }
  MPI_Waitall(COMMS, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < COMMS; i++) {
    end(&calls[i], "another order");
    MPI_Comm_free(&comms[i]);
  }
}

static void blocking_calls_come_after_those_that_are_pending(void) {
  for (int round = 0; round < 20; round++) {
    MPI_Request requests[2];
    sum_call first = new_call(9000, round), second = new_call(50, round + 1),
             third = new_call(9000, round + 2);
    start(&first, MPI_COMM_WORLD, &requests[0]);
    start(&second, MPI_COMM_WORLD, &requests[1]);
    MPI_Allreduce(third.send, third.receive, third.count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    end(&third, "the blocking one");
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    end(&first, "the first");
    end(&second, "the second");
  }
}

/* The others make the call when they hear that rank 0 has come back from it. */
static void the_call_waits_for_nobody(void) {
  MPI_Request request;
  sum_call call = new_call(50000, 1);
  int word = 1;
  if (mpi_rank > 0) {
    MPI_Recv(&word, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  start(&call, MPI_COMM_WORLD, &request);
  for (int to = 1; mpi_rank == 0 && to < mpi_size; to++) {
    MPI_Send(&word, 1, MPI_INT, to, 9, MPI_COMM_WORLD);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  end(&call, "after the message");
}

/* A sum ends while the program does something else, without a call of MPI. */
static void sums_end_while_the_program_computes(void) {
  MPI_Request request;
  sum_call call = new_call(50000, 2);
  volatile float *last = &call.receive[call.count - 1];
  start(&call, MPI_COMM_WORLD, &request);
  for (int i = 0; i < 20000 && *last != sum_of(call.count - 1, call.seed); i++) {
    usleep(1000);
  }
  require(*last == sum_of(call.count - 1, call.seed), "nothing came in 20 s");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  end(&call, "meanwhile");
}

/* ------------------------------------------------------------------ failures */

static int asked_world, asked_own;

static void on_world(MPI_Comm *comm, int *code, ...) {
  (void)comm;
  (void)code;
  asked_world++;
}

static void on_own(MPI_Comm *comm, int *code, ...) {
  (void)comm;
  (void)code;
  asked_own++;
}

/* Ranks that sum different counts: every rank hears of it. */
static void fail_on(MPI_Comm comm, int freed) {
  MPI_Request request;
  MPI_Status status;
  sum_call call = new_call(4000 + mpi_rank, 1);
  asked_world = asked_own = 0;
  start(&call, comm, &request);
  if (freed) {
    MPI_Comm_free(&comm);
  }
  int code = mpi_rank % 2 ? MPI_Wait(&request, &status) : MPI_Waitall(1, &request, &status);
  int want = mpi_rank % 2 ? MPI_ERR_OTHER : MPI_ERR_IN_STATUS;
  require(code == want, "the wait returned %d", code);
  require(asked_own == 1, "the communicator's error handler was asked %d times", asked_own);
  require(asked_world == 0, "the world's error handler was asked");
  free(call.send);
}

/* Plain MPI does not compare counts. */
static void the_communicators_error_handler_decides(void) {
  MPI_Errhandler world, own, found;
  MPI_Comm_create_errhandler(on_world, &world);
  MPI_Comm_create_errhandler(on_own, &own);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, world);
  for (int freed = 0; freed < 2; freed++) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, own);
    fail_on(comm, freed);
    if (!freed) {
      MPI_Comm_free(&comm);
    }
  }
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &found);
  require(found == world, "the world has another error handler");
  MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER);
  require(asked_world == 1, "the world's error handler was not asked");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&found);
  MPI_Errhandler_free(&world);
  MPI_Errhandler_free(&own);
}

static const mpi_property properties[] = {
    PROPERTY(thirty_in_flight_end_in_order),
    PROPERTY(communicators_may_be_used_in_different_order),
    PROPERTY(blocking_calls_come_after_those_that_are_pending),
    PROPERTY(the_call_waits_for_nobody),
    PROPERTY_WHERE(needs_interposer, sums_end_while_the_program_computes),
    PROPERTY_WHERE(needs_interposer, the_communicators_error_handler_decides),
};
RUN_INTERPOSER_PROPERTIES(before, properties)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* Messages that the program has in flight in MPI move while a rank waits in libcomm: the
 * first of two partners comes to the call only when its message has gone, which needs the
 * second one, who is in the call. */

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/progress_model.h"

enum { COUNT = 5000, SIZE = 2000000, TAG = 3 };

static float values[COUNT];
static unsigned char message[2][SIZE];

static bool is_first(void) {
  return mpi_rank % 2 == 0;
}

static void begin_message(MPI_Request *requests) {
  memset(message[0], mpi_rank + 1, SIZE);
  memset(message[1], 0, SIZE);
  MPI_Irecv(message[1], SIZE, MPI_BYTE, mpi_rank ^ 1, TAG, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(message[0], SIZE, MPI_BYTE, mpi_rank ^ 1, TAG, MPI_COMM_WORLD, &requests[1]);
  if (is_first()) {
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
}

static void end_message(MPI_Request *requests) {
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  require(message[1][0] == (mpi_rank ^ 1) + 1 && message[1][SIZE - 1] == message[1][0],
          "the message is not what was sent");
}

static void fill(void) {
  for (int i = 0; i < COUNT; i++) {
    values[i] = (float)(mpi_rank + i % 7);
  }
}

static void check(void) {
  float ranks = (float)(mpi_size * (mpi_size - 1) / 2);
  for (int i = 0; i < COUNT; i++) {
    float want = ranks + (float)(mpi_size * (i % 7));
    require(values[i] == want, "element %d is %g, not %g", i, (double)values[i], (double)want);
  }
}

/* ------------------------------------------------------------------ ways to wait */

static void by_call(lcomm_comm *comm) {
  require_fine(comm, lcomm_allreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM));
}

static void by_wait(lcomm_comm *comm) {
  lcomm_request request;
  require_fine(comm,
               lcomm_iallreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &request));
  require_fine(comm, lcomm_wait(comm, &request));
}

static void by_test(lcomm_comm *comm) {
  lcomm_request request;
  require_fine(comm,
               lcomm_iallreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &request));
  for (int done = 0; !done; sched_yield()) {
    lcomm_status status = lcomm_test(comm, &request, &done);
    require_fine(comm, status);
    done |= status != LCOMM_OK;
  }
}

static void by_split(lcomm_comm *comm) {
  lcomm_comm *part = NULL;
  require_fine(comm, lcomm_split(comm, 0, mpi_rank, NULL, &part));
  if (part) {
    by_call(part);
    require_fine(NULL, lcomm_destroy(part));
  }
}

static void with_all_transports(void (*wait)(lcomm_comm *), lcomm_progress_mode mode) {
  for (int t = 0; t < transport_count(); t++) {
    lcomm_comm *comm = make_mode("net=none", transports[t], mode, 60);
    for (int round = 0; comm && round < 3; round++) {
      MPI_Request requests[2];
      fill();
      begin_message(requests);
      wait(comm);
      end_message(requests);
      check();
    }
    if (comm) {
      require_fine(NULL, lcomm_destroy(comm));
    }
  }
}

static void calls_let_messages_pass(void) {
  with_all_transports(by_call, LCOMM_PROGRESS_CALLS);
}

static void waits_let_messages_pass(void) {
  with_all_transports(by_wait, LCOMM_PROGRESS_CALLS);
}

static void waits_beside_a_thread_let_messages_pass(void) {
  with_all_transports(by_wait, LCOMM_PROGRESS_THREAD);
}

static void tests_let_messages_pass(void) {
  with_all_transports(by_test, LCOMM_PROGRESS_CALLS);
}

static void splits_let_messages_pass(void) {
  with_all_transports(by_split, LCOMM_PROGRESS_CALLS);
}

/* ------------------------------------------------------- the end, the bootstrap */

/* The barrier of lcomm_destroy is a wait, too. */
static void the_end_lets_messages_pass(void) {
  MPI_Request requests[2];
  lcomm_comm *comm = make_mode("net=none", "auto", LCOMM_PROGRESS_CALLS, 60);
  begin_message(requests);
  require_fine(NULL, lcomm_destroy(comm));
  end_message(requests);
}

static int gather(void *context, const void *send, void *receive, size_t size) {
  (void)context;
  return MPI_Allgather(send, (int)size, MPI_BYTE, receive, (int)size, MPI_BYTE, MPI_COMM_WORLD);
}

/* A bootstrap of the caller's, in a process where MPI runs. */
static void with_any_bootstrap_messages_pass(void) {
  MPI_Request requests[2];
  lcomm_bootstrap boot = {.rank = mpi_rank, .world_size = mpi_size, .allgather = gather};
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.nodes = 2;
  require_fine(NULL, lcomm_create(&boot, &config, &comm));
  fill();
  begin_message(requests);
  by_call(comm);
  end_message(requests);
  check();
  require_fine(NULL, lcomm_destroy(comm));
}

static const mpi_property properties[] = {
    PROPERTY(calls_let_messages_pass),
    PROPERTY(waits_let_messages_pass),
    PROPERTY(waits_beside_a_thread_let_messages_pass),
    PROPERTY(tests_let_messages_pass),
    PROPERTY(splits_let_messages_pass),
    PROPERTY(the_end_lets_messages_pass),
    PROPERTY(with_any_bootstrap_messages_pass),
};
RUN_PROPERTIES(mpi_property_main_threads, properties)

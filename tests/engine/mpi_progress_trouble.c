/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 5 */

/* Under a progress thread trouble ends as without it: on every rank, with the
 * same error and a name. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/progress_model.h"

/* The operation failed with `wanted` on every rank, for good, and the sentence has `word`. */
static void require_failure(lcomm_comm *comm, lcomm_status got, lcomm_status wanted,
                            const char *word) {
  require_status_everywhere(comm, got, wanted, word);
  require(lcomm_destroy(comm) == wanted, "destroy forgot");
}

static void *abort_it(void *comm) {
  lcomm_abort(comm, "the disk is full");
  return NULL;
}

/* Rank 0 is in no call: its progress thread tells the others. */
static void an_abort_by_another_thread_ends_the_waits_of_all(void) {
  for (int t = 0; t < transport_count(); t++) {
    lcomm_comm *comm = make_driven("net=none", transports[t], 30);
    lcomm_status status = LCOMM_OK;
    pthread_t thread;
    if (!comm) {
      continue;
    }
    if (mpi_rank != 0) {
      status = lcomm_barrier(comm);
    } else if (pthread_create(&thread, NULL, abort_it, comm) == 0) {
      pthread_join(thread, NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    status = status == LCOMM_OK ? lcomm_barrier(comm) : status;
    require_failure(comm, status, LCOMM_ERR_ABORTED, "the disk is full");
  }
}

static lcomm_status sum_some(lcomm_comm *comm) {
  static float values[1000];
  return lcomm_allreduce(comm, values, values, 1000, LCOMM_FLOAT32, LCOMM_SUM);
}

static void a_rank_that_never_comes_is_named(void) {
  char name[32];
  snprintf(name, sizeof(name), "rank %d", mpi_size - 1);
  for (int t = 0; t < transport_count(); t++) {
    /* On one node everybody waits for that very rank. */
    lcomm_comm *comm = make_nodes(1, "net=none", transports[t], LCOMM_PROGRESS_THREAD, 0.5);
    lcomm_status status = LCOMM_OK;
    if (!comm) {
      continue;
    }
    if (mpi_rank < mpi_size - 1) {
      status = sum_some(comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    status = status == LCOMM_OK ? sum_some(comm) : status;
    require_failure(comm, status, LCOMM_ERR_TIMEOUT, name);
  }
}

static void different_calls_are_named_on_every_rank(void) {
  static float values[5000];
  for (int t = 0; t < transport_count(); t++) {
    lcomm_comm *comm = make_driven("net=none", transports[t], 30);
    lcomm_request request = {0};
    if (!comm) {
      continue;
    }
    uint64_t count = mpi_rank == 1 ? 5000 : 4999;
    lcomm_status status =
        lcomm_iallreduce(comm, values, values, count, LCOMM_FLOAT32, LCOMM_SUM, &request);
    MPI_Barrier(MPI_COMM_WORLD); /* the threads may have found out by now */
    status = status == LCOMM_OK ? lcomm_wait(comm, &request) : status;
    status = status == LCOMM_OK ? lcomm_barrier(comm) : status;
    require_failure(comm, status, LCOMM_ERR_MISMATCH, "the same");
  }
}

/* The last rank joins only when rank 0 has gone. */
static void to_destroy_with_operations_in_flight_is_an_abort(void) {
  static float values[100000];
  for (int t = 0; t < transport_count(); t++) {
    lcomm_comm *comm = make_driven("net=none", transports[t], 30);
    lcomm_request request = {0};
    lcomm_status status = LCOMM_OK;
    bool last = mpi_rank == mpi_size - 1;
    if (!comm) {
      continue;
    }
    if (!last) {
      status = lcomm_iallreduce(comm, values, values, 100000, LCOMM_FLOAT32, LCOMM_SUM, &request);
    }
    if (mpi_rank == 0) { /* a rank that begins later may have heard of it */
      status = lcomm_destroy(comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (last) {
      status = lcomm_allreduce(comm, values, values, 100000, LCOMM_FLOAT32, LCOMM_SUM);
    } else if (mpi_rank != 0 && status == LCOMM_OK) {
      status = lcomm_wait(comm, &request);
    }
    require(status == LCOMM_ERR_ABORTED, "over %s: %s", transports[t], lcomm_status_name(status));
    if (mpi_rank != 0) {
      require(lcomm_destroy(comm) == LCOMM_ERR_ABORTED, "destroy forgot");
    }
  }
}

static void the_mode_can_be_set_from_outside(void) {
  lcomm_comm *comm = NULL;
  setenv("LCOMM_PROGRESS", "thread", 1);
  comm = make_mode("net=none", "auto", LCOMM_PROGRESS_DEFAULT, 20);
  require(!comm || comm->progress.thread, "LCOMM_PROGRESS=thread starts no thread");
  lcomm_destroy(comm);
  comm = make_mode("net=none", "auto", LCOMM_PROGRESS_CALLS, 20);
  require(comm && !comm->progress.thread, "the program's own wish is ignored");
  lcomm_destroy(comm);
  setenv("LCOMM_PROGRESS", "often", 1);
  comm = NULL;
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, NULL, &comm);
  require(status == LCOMM_ERR_ARGUMENT && strstr(lcomm_last_error(NULL), "often"), "%s",
          lcomm_last_error(NULL));
  unsetenv("LCOMM_PROGRESS");
}

static const mpi_property properties[] = {
    PROPERTY(an_abort_by_another_thread_ends_the_waits_of_all),
    PROPERTY_OF(2, a_rank_that_never_comes_is_named),
    PROPERTY_OF(2, different_calls_are_named_on_every_rank),
    PROPERTY_OF(2, to_destroy_with_operations_in_flight_is_an_abort),
    PROPERTY(the_mode_can_be_set_from_outside),
};
RUN_PROPERTIES(mpi_property_main_threads, properties)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 5 */

/* A rank that comes late learns of an error that happened meanwhile, however much
 * others had to say before. */

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/engine/progress_model.h"

static float values[100000];

static void *abort_later(void *comm) {
  usleep(2500000); /* until several fingerprints have been sent */
  lcomm_abort(comm, "the disk is full");
  return NULL;
}

static lcomm_status sum_values(lcomm_comm *comm) {
  return lcomm_allreduce(comm, values, values, 100000, LCOMM_FLOAT32, LCOMM_SUM);
}

/* The rank before the late one tells it a fingerprint every second, then that it has failed. */
static lcomm_status abort_while_waiting(lcomm_comm *comm, int late) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, abort_later, comm) != 0) {
    lcomm_abort(comm, "no thread");
    return LCOMM_ERR_ABORTED;
  }
  lcomm_status status = sum_values(comm);
  pthread_join(thread, NULL);
  MPI_Send(NULL, 0, MPI_BYTE, late, 0, MPI_COMM_WORLD);
  return status;
}

static void an_error_is_told_to_a_rank_that_comes_late(void) {
  int late = mpi_size - 1;
  for (int t = 0; mpi_size > 1 && t < transport_count(); t++) {
    lcomm_comm *comm = make_nodes(1, "net=none", transports[t], LCOMM_PROGRESS_CALLS, 20);
    lcomm_status status = LCOMM_OK;
    if (!comm) {
      continue;
    }
    if (mpi_rank == late - 1) {
      status = abort_while_waiting(comm, late);
    } else if (mpi_rank != late) {
      status = sum_values(comm);
    } else {
      MPI_Recv(NULL, 0, MPI_BYTE, late - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      status = sum_values(comm);
    }
    require(status == LCOMM_ERR_ABORTED, "over %s: %s: %s", transports[t],
            lcomm_status_name(status), lcomm_last_error(comm));
    require(strstr(lcomm_last_error(comm), "the disk is full") != NULL, "over %s: %s",
            transports[t], lcomm_last_error(comm));
    lcomm_destroy(comm);
  }
}

static const mpi_property properties[] = {
    PROPERTY(an_error_is_told_to_a_rank_that_comes_late),
};
RUN_PROPERTIES(mpi_property_main, properties)

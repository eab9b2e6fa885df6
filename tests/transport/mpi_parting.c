/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 5 */

/* A rank that has not noticed yet that all came to lcomm_destroy may still tell others that
 * it waits, when they are through with it. MPI gives the context of a communicator that is
 * freed to the next one: a control message that comes so late must neither meet that one nor, while
 * it is being made, take the place of a message in the program's own communicator. */

#include <unistd.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/operation.h"
#include "tests/engine/progress_model.h"

enum { CALLS = 100, MESSAGES = 400, LATE_US = 300000 };

static lcomm_comm *late; /* on the rank that control messages late; NULL once it has */
static const lcomm_transport_table *real;

/* A message of the last barrier is there, and so are those of this rank at the others, but
 * it still waits for a while, and tells so. */
static lcomm_status test_late(lcomm_transport *transport, lcomm_transfer *transfer, bool *over,
                              size_t *size) {
  lcomm_status status = real->test(transport, transfer, over, size);
  if (status == LCOMM_OK && *over && late) {
    lcomm_comm *comm = late;
    late = NULL;
    usleep(LATE_US);
    lcomm_fingerprints_send(comm);
  }
  return status;
}

static void destroy_late(lcomm_comm *comm) {
  static lcomm_transport_table table;
  lcomm_transport *link = lcomm_comm_link(comm, (mpi_rank + 1) % mpi_size);
  if (mpi_rank == 0) {
    real = link->table;
    table = *real;
    table.test = test_late;
    link->table = &table;
    late = comm;
  }
  require_fine(NULL, lcomm_destroy(comm));
}

static lcomm_comm *make_over(MPI_Comm parent, const char *transport) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.transport = transport;
  config.timeout_s = 20;
  config.nodes = 2;
  if (lcomm_create_mpi(parent, &config, &comm) != LCOMM_OK) {
    skip_property(lcomm_last_error(NULL));
  }
  return comm;
}

static void sum_often(lcomm_comm *comm, const char *transport) {
  for (int i = 0; i < CALLS && all_well(); i++) {
    float value = (float)(mpi_rank + i);
    float wanted = (float)(mpi_size * (mpi_size - 1) / 2 + i * mpi_size);
    lcomm_status status = lcomm_allreduce(comm, &value, &value, 1, LCOMM_FLOAT32, LCOMM_SUM);
    require(status == LCOMM_OK, "over %s, call %d: %s", transport, i, lcomm_last_error(comm));
    require(status != LCOMM_OK || value == wanted, "over %s, call %d: %g", transport, i, value);
  }
}

/* The program's own messages, to the rank that was told late, with a limit. */
static void send_often(MPI_Comm parent, const char *transport) {
  static const double PATIENCE_S = 20;
  static int sent[MESSAGES], received[MESSAGES];
  MPI_Request requests[MESSAGES];
  double end_s = lcomm_clock_s() + PATIENCE_S;
  int over = mpi_rank > 1;
  for (int i = 0; i < MESSAGES && mpi_rank < 2; i++) {
    sent[i] = i;
    if (mpi_rank == 0) {
      MPI_Isend(&sent[i], 1, MPI_INT, 1, i, parent, &requests[i]);
    } else {
      MPI_Irecv(&received[i], 1, MPI_INT, 0, i, parent, &requests[i]);
    }
  }
  while (!over && lcomm_clock_s() < end_s) {
    MPI_Testall(MESSAGES, requests, &over, MPI_STATUSES_IGNORE);
  }
  require(over, "over %s: a message of the program is lost", transport);
}

static bool all_are_well(void) {
  int well = all_well();
  MPI_Allreduce(MPI_IN_PLACE, &well, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  return well != 0;
}

/* False after a failure: what is broken then stays as it is. */
static bool part_and_go_on(MPI_Comm parent, const char *transport) {
  lcomm_comm *comm = make_over(parent, transport);
  if (!comm) {
    return true;
  }
  sum_often(comm, transport);
  destroy_late(comm);
  comm = make_over(parent, transport);
  sum_often(comm, transport);
  send_often(parent, transport);
  if (!all_are_well()) {
    return false;
  }
  require_fine(NULL, lcomm_destroy(comm));
  return true;
}

static void a_notice_that_comes_last_meets_nothing_that_is_made_later(void) {
  bool well = mpi_size > 1;
  for (int t = 0; well && t < transport_count(); t++) {
    MPI_Comm parent = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    well = part_and_go_on(parent, transports[t]);
    if (well) {
      MPI_Comm_free(&parent);
    }
  }
}

/* ---------------------------------------------------- a rank that stays behind */

enum { THROUGH_TAG = 77 };

static char logged[1024];

static void keep_sentence(void *context, lcomm_log_level level, const char *sentence) {
  (void)context;
  (void)level;
  snprintf(logged, sizeof(logged), "%s", sentence);
}

/* Rank 0 sends its last control messages when all others have destroyed the communicator. */
static void part_last(lcomm_transport *transport, int peer) {
  static int through;
  for (int token; through < mpi_size - 1; through++) {
    MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, THROUGH_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  real->control.part(transport, peer);
}

static void destroy_behind(lcomm_comm *comm) {
  static lcomm_transport_table table;
  if (mpi_rank == 0) {
    lcomm_transport *link = lcomm_comm_link(comm, 1);
    real = link->table;
    table = *real;
    table.control.part = part_last;
    link->table = &table;
  }
  require_fine(NULL, lcomm_destroy(comm));
  if (mpi_rank != 0) {
    MPI_Send(&mpi_rank, 1, MPI_INT, 0, THROUGH_TAG, MPI_COMM_WORLD);
  }
}

static void a_rank_that_does_not_end_its_part_is_named_and_holds_nobody(void) {
  lcomm_comm *comm = mpi_size > 1 ? make_over(MPI_COMM_WORLD, "mpi") : NULL;
  if (!comm) {
    return;
  }
  sum_often(comm, "mpi");
  lcomm_log_set(LCOMM_LOG_WARN, keep_sentence, NULL);
  destroy_behind(comm);
  lcomm_log_set(LCOMM_LOG_WARN, NULL, NULL);
  require(mpi_rank == 0 || strstr(logged, "but rank 0"), "rank 0 is not named: %s", logged);
  MPI_Barrier(MPI_COMM_WORLD);
}

static const mpi_property properties[] = {
    PROPERTY(a_notice_that_comes_last_meets_nothing_that_is_made_later),
    PROPERTY(a_rank_that_does_not_end_its_part_is_named_and_holds_nobody),
};
RUN_PROPERTIES(mpi_property_main, properties)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 5 */

/* Flow control: a rank that others receive from does not run away from them, and
 * nothing waits for ever because of it. */

#include "libcomm/engine/flow.h"
#include "tests/engine/progress_model.h"

enum { MANY = 1500, PROGRESSES = 300 };

static lcomm_request requests[MANY];

/* Rank 0 begins broadcasts while the others make no call; how many ended by then. Each
 * one that has to wait is counted once. */
static uint64_t ended_alone(lcomm_comm *comm, int32_t *data, uint64_t count, int broadcasts) {
  lcomm_stats before = {0}, now = {0};
  lcomm_stats_get(comm, &before);
  for (int i = 0; mpi_rank == 0 && i < broadcasts; i++) {
    data[(uint64_t)i * count] = i;
    require_fine(comm, lcomm_ibroadcast(comm, data + (uint64_t)i * count, count, LCOMM_INT32, 0,
                                        &requests[i]));
  }
  for (int i = 0; mpi_rank == 0 && i < PROGRESSES; i++) {
    lcomm_progress(comm);
  }
  lcomm_stats_get(comm, &now);
  uint64_t waits = now.flow_waits - before.flow_waits;
  require(mpi_rank != 0 || (waits > 0 && waits <= (uint64_t)broadcasts),
          "%d broadcasts waited for others %llu times", broadcasts, (unsigned long long)waits);
  MPI_Barrier(MPI_COMM_WORLD);
  return now.operations - before.operations;
}

static void finish_broadcasts(lcomm_comm *comm, int32_t *data, uint64_t count, int broadcasts,
                              const char *transport) {
  for (int i = 0; i < broadcasts; i++) {
    if (mpi_rank == 0) {
      require_fine(comm, lcomm_wait(comm, &requests[i]));
      continue;
    }
    data[0] = -1;
    require_fine(comm, lcomm_broadcast(comm, data, count, LCOMM_INT32, 0));
    require(data[0] == i, "over %s: broadcast %d brings %d", transport, i, data[0]);
  }
}

static void check_root(uint64_t count, int broadcasts, uint64_t limit) {
  int32_t *data = calloc(count * (uint64_t)broadcasts, sizeof *data);
  for (int t = 0; t < transport_count() && data; t++) {
    lcomm_comm *comm = make_nodes(mpi_size, "", transports[t], LCOMM_PROGRESS_CALLS, 30);
    uint64_t ended = ended_alone(comm, data, count, broadcasts);
    require(ended <= limit, "over %s: the root is %llu broadcasts of %llu elements ahead",
            transports[t], (unsigned long long)ended, (unsigned long long)count);
    finish_broadcasts(comm, data, count, broadcasts, transports[t]);
    require_fine(NULL, lcomm_destroy(comm));
  }
  free(data);
}

static void a_root_is_at_most_a_window_of_operations_ahead(void) {
  check_root(100, MANY, LCOMM_FLOW_OPERATIONS);
}

static void a_root_is_at_most_a_window_of_bytes_and_one_operation_ahead(void) {
  enum { COUNT = 250000 };
  check_root(COUNT, 40, LCOMM_FLOW_BYTES / (4 * COUNT) + 1);
}

/* A number that all ranks draw alike. */
static uint32_t draw(uint32_t *state) {
  *state = *state * UINT32_C(1664525) + UINT32_C(1013904223);
  return *state >> 8;
}

static void start_any(lcomm_comm *comm, int i, int32_t *value, uint32_t *state) {
  int root = (int)(draw(state) % (uint32_t)mpi_size);
  *value = mpi_rank == root ? i : -1;
  if (draw(state) % 8 == 0) {
    *value = 1;
    require_fine(comm,
                 lcomm_iallreduce(comm, value, value, 1, LCOMM_INT32, LCOMM_SUM, &requests[i]));
  } else {
    require_fine(comm, lcomm_ibroadcast(comm, value, 1, LCOMM_INT32, root, &requests[i]));
  }
}

/* Roots change, sums come between, ranks begin late and wait from the last to the first. */
static void many_operations_in_flight_from_all_roots_end(void) {
  static int32_t values[MANY];
  for (int t = 0; t < transport_count(); t++) {
    for (int mode = LCOMM_PROGRESS_CALLS; mode <= LCOMM_PROGRESS_THREAD; mode++) {
      uint32_t state = 7;
      lcomm_comm *comm = make_mode("", transports[t], (lcomm_progress_mode)mode, 30);
      if (!comm) {
        continue;
      }
      usleep((useconds_t)(2000 * mpi_rank));
      for (int i = 0; i < MANY; i++) {
        start_any(comm, i, &values[i], &state);
      }
      for (int i = MANY; i-- > 0;) {
        require_fine(comm, lcomm_wait(comm, &requests[i]));
        require(values[i] == i || values[i] == mpi_size, "over %s: operation %d gives %d",
                transports[t], i, values[i]);
      }
      require_fine(NULL, lcomm_destroy(comm));
    }
  }
}

static const mpi_property properties[] = {
    PROPERTY(a_root_is_at_most_a_window_of_operations_ahead),
    PROPERTY(a_root_is_at_most_a_window_of_bytes_and_one_operation_ahead),
    PROPERTY(many_operations_in_flight_from_all_roots_end),
};
RUN_PROPERTIES(mpi_property_main_threads, properties)

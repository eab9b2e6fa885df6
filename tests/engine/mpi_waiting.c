/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 5 */

/* Waiting: a rank that sleeps is woken by what it waits for. */

#include "tests/engine/progress_model.h"

enum { COUNT_MAX = 300000, CALLS = 15, LATE_US = 2000 };

static float values[COUNT_MAX];

/* Calls to which another rank comes late each time; the sleeps that nobody ended
 * although a message was complete, over all ranks. */
static void call_with_late_ranks(lcomm_comm *comm, uint64_t count, const char *transport,
                                 const char *policy) {
  lcomm_stats stats = {0};
  memset(values, 0, sizeof(values));
  for (int i = 0; i < CALLS; i++) {
    if (i % mpi_size == mpi_rank) {
      usleep(LATE_US);
    }
    require_fine(comm, lcomm_allreduce(comm, values, values, count, LCOMM_FLOAT32, LCOMM_SUM));
  }
  require_fine(comm, lcomm_stats_get(comm, &stats));
  require(stats.missed_wakeups == 0, "over %s, %s, %llu floats: %llu sleeps ran to their limit",
          transport, policy, (unsigned long long)count, (unsigned long long)stats.missed_wakeups);
}

static void no_sleep_runs_to_its_limit_while_a_message_is_complete(void) {
  static const uint64_t counts[] = {1000, 3000, 30000, COUNT_MAX};
  static const char *const policies[] = {"net=none", "net=int8 min=1", "net=int8+zstd min=1"};
  for (int t = 0; t < transport_count(); t++) {
    for (int p = 0; p < 3; p++) {
      for (int mode = LCOMM_PROGRESS_CALLS; mode <= LCOMM_PROGRESS_THREAD; mode++) {
        lcomm_comm *comm =
            make_nodes(mpi_size, policies[p], transports[t], (lcomm_progress_mode)mode, 30);
        for (int c = 0; comm && c < 4; c++) {
          call_with_late_ranks(comm, counts[c], transports[t], policies[p]);
        }
        if (comm) {
          require_fine(NULL, lcomm_destroy(comm));
        }
      }
    }
  }
}

static const mpi_property properties[] = {
    PROPERTY(no_sleep_runs_to_its_limit_while_a_message_is_complete),
};
RUN_PROPERTIES(mpi_property_main_threads, properties)

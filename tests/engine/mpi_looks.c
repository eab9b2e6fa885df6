/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 6 */

/* A rank looks at a message in flight when there is news of it: looks grow with messages, and not
 * with messages times computations. */

#include "tests/engine/progress_model.h"

enum { COUNT = 1 << 20, SUMS = 3 };

static float values[COUNT];

/* Sent and received. */
static uint64_t messages_of(const lcomm_comm *comm) {
  lcomm_stats stats = {0};
  lcomm_stats_get(comm, &stats);
  uint64_t sent = 0;
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    sent += stats.sent_messages[i];
  }
  return 2 * sent;
}

/* Header and payload, each once; once more after it was posted; and in shares of a MiB. */
static void require_few_looks(int nodes, const char *policy, const char *transport) {
  lcomm_comm *comm = make_nodes(nodes, policy, transport, LCOMM_PROGRESS_CALLS, 60);
  if (!comm) {
    return;
  }
  for (int i = 0; i < SUMS; i++) {
    require_fine(comm, lcomm_allreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM));
  }
  uint64_t messages = messages_of(comm), shares = SUMS * COUNT * sizeof(float) >> 20;
  uint64_t most = 4 * (messages + shares);
  require(comm->waiting.looks >= messages && comm->waiting.looks <= most,
          "%s over %s on %d nodes: %llu looks at %llu messages", policy, transport, nodes,
          (unsigned long long)comm->waiting.looks, (unsigned long long)messages);
  require_fine(NULL, lcomm_destroy(comm));
}

static void looks_are_as_many_as_messages(void) {
  static const char *const policies[] = {"net=none", "net=int8", "net=topk:0.01",
                                         "net=none algo=direct", "net=int8+zstd algo=gather"};
  for (int p = 0; p < 5; p++) {
    for (int nodes = 1; nodes <= mpi_size; nodes += nodes == 1 && mpi_size > 2 ? 1 : mpi_size) {
      require_few_looks(nodes, policies[p], "shm");
    }
    require_few_looks(mpi_size, policies[p], "shm");
    if (lcomm_ucx_version()) {
      require_few_looks(mpi_size, policies[p], "ucx");
    }
  }
}

static const mpi_property properties[] = {
    PROPERTY(looks_are_as_many_as_messages),
};
RUN_PROPERTIES(mpi_property_main, properties)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 8 */

/* What slots of a run cost: those that are only sent need no more than their header where the
 * payload is a part of the caller's buffer, and travels apart from it. */

#include <stdlib.h>

#include "libcomm/engine/engine.h"
#include "tests/support/require_fine.h"

enum { COUNT = 64 << 10, HEADER_SLOT = 64, RECEIVED_SLOT = 4224, SPARE = 256 };

static uint64_t memory_of(const lcomm_comm *comm) {
  lcomm_stats stats;
  lcomm_stats_get(comm, &stats);
  return stats.memory_bytes;
}

static void all_to_all(lcomm_comm *comm) {
  size_t size = (size_t)mpi_size * COUNT;
  int32_t *send = malloc(size * sizeof *send), *receive = malloc(size * sizeof *receive);
  uint64_t wrong = 0;
  for (size_t i = 0; i < size; i++) {
    send[i] = (int32_t)(i * 31) + mpi_rank;
  }
  require_fine(comm, lcomm_alltoall(comm, send, receive, COUNT, LCOMM_INT32));
  for (int from = 0; from < mpi_size; from++) {
    for (size_t i = 0; i < COUNT; i++) {
      size_t there = (size_t)mpi_rank * COUNT + i;
      wrong += receive[(size_t)from * COUNT + i] != (int32_t)(there * 31) + from;
    }
  }
  require(wrong == 0, "%d elements are wrong", (int)wrong);
  free(send);
  free(receive);
}

static void slots_that_are_only_sent_cost_a_header(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.transport = "shm";
  config.nodes = 1;
  lcomm_comm *comm = make_comm_if_possible(&config);
  if (!comm) {
    return;
  }
  uint64_t before = memory_of(comm), others = (uint64_t)mpi_size - 1;
  all_to_all(comm);
  uint64_t own = COUNT * sizeof(int32_t) + 2 * HEADER_SLOT; /* it goes by way of a slot */
  uint64_t most = own + others * (HEADER_SLOT + RECEIVED_SLOT) + SPARE;
  uint64_t held = memory_of(comm) - before;
  require(held <= most, "slots hold %llu bytes, not %llu", (unsigned long long)held,
          (unsigned long long)most);
  require_fine(NULL, lcomm_destroy(comm));
}

static const mpi_property properties[] = {
    PROPERTY(slots_that_are_only_sent_cost_a_header),
};
RUN_PROPERTIES(mpi_property_main, properties)

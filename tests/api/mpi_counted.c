/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 8 */

/* The operations, bytes and messages that a communicator counts, by class of link. */

#include <stdlib.h>

#include "tests/support/mpi_property.h"

static lcomm_stats stats_after_sums(lcomm_comm *comm, float *values, uint64_t count, int sums) {
  lcomm_stats before, stats;
  lcomm_stats_get(comm, &before);
  for (int i = 0; i < sums; i++) {
    lcomm_status status = lcomm_allreduce(comm, values, values, count, LCOMM_FLOAT32, LCOMM_SUM);
    require(status == LCOMM_OK, "%s", lcomm_last_error(comm));
  }
  lcomm_stats_get(comm, &stats);
  require(stats.operations == before.operations + (uint64_t)sums,
          "%d sums of %llu elements are %llu operations", sums, (unsigned long long)count,
          (unsigned long long)(stats.operations - before.operations));
  return stats;
}

static double sum_over_ranks(uint64_t value) {
  double all = (double)value;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

/* Between two nodes: one exchange of encoded shards; otherwise two phases. */
static void counted_bytes_equal_the_formula(void) {
  enum { COUNT = 128 * 1024 };
  int nodes = mpi_size >= 4 ? 4 : mpi_size;
  if (nodes < 2 || mpi_size % nodes != 0) {
    skip_property("needs at least 2 ranks on even nodes");
    return;
  }
  float *values = calloc(COUNT, sizeof(float));
  lcomm_comm *comm = make_comm("net=int8", nodes);
  lcomm_stats stats = stats_after_sums(comm, values, COUNT, 1);
  double all = sum_over_ranks(stats.sent_bytes[LCOMM_LINK_NET]);
  double formula = 2.0 * (nodes - 1) * COUNT * 8.25 / 8;
  require(all >= formula && all <= formula * 1.03, "%g bytes, formula %g", all, formula);
  lcomm_destroy(comm);
  free(values);
}

/* Short sums take a way of their own inside a host, also where its ranks pose as
 * nodes; what they send is counted like anything else. */
static void every_byte_is_counted_under_the_class_of_its_link(void) {
  static float values[5000];
  static const uint64_t counts[] = {1, 64, 1000, 5000};
  const int nodes[] = {1, mpi_size};
  for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
    for (int n = 0; n < 2; n++) {
      lcomm_comm *comm = make_comm("", nodes[n]);
      lcomm_stats stats = stats_after_sums(comm, values, counts[c], 5);
      uint64_t inside = stats.sent_bytes[LCOMM_LINK_SHM], net = stats.sent_bytes[LCOMM_LINK_NET];
      uint64_t other = nodes[n] == 1 ? net : inside, mine = nodes[n] == 1 ? inside : net;
      require(nodes[n] == 1 && mpi_size > 1 ? other == 0 : true, "%d bytes between nodes of one",
              (int)other);
      require(nodes[n] > 1 ? other == 0 : true, "%d bytes inside nodes of one rank", (int)other);
      require(mpi_size == 1 ? mine == 0 : mine >= 5 * counts[c] * sizeof(float) / mpi_size,
              "%d bytes for sums of %d elements", (int)mine, (int)counts[c]);
      for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
        double sent = sum_over_ranks(stats.sent_bytes[link]);
        double received = sum_over_ranks(stats.received_bytes[link]);
        require(sent >= received && sent <= received, "class %d: %g sent, %g received", link, sent,
                received);
        require((stats.sent_messages[link] > 0) == (stats.sent_bytes[link] > 0),
                "class %d: bytes without messages", link);
      }
      lcomm_destroy(comm);
    }
  }
}

static const mpi_property properties[] = {
    PROPERTY(counted_bytes_equal_the_formula),
    PROPERTY(every_byte_is_counted_under_the_class_of_its_link),
};
RUN_PROPERTIES(mpi_property_main, properties)

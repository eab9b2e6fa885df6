/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 4 */

/* What is measured for net=auto: once the time is used up nothing more is tried than gives a
 * figure, so a busy machine does not make it long. Told by numbers of operations, not by the clock.
 */

#include "libcomm/comm/measure.h"
#include "libcomm/plan/auto_figures.h"
#include "tests/support/mpi_property.h"

enum { NODES = 2, LEAST = 9, MOST = 61 }; /* operations, see measure.h */

static const double NEVER_S = 1e9;

static uint32_t count_operations(const lcomm_comm *comm) {
  uint32_t both = comm->operations.next[LCOMM_SEQUENCE_SPACE_CALLS] +
                  comm->operations.next[LCOMM_SEQUENCE_SPACE_BUCKETS];
  return both / LCOMM_SEQUENCE_SPACE_COUNT;
}

/* Measure once more, as if nothing were known; returns how many operations that took. */
static int measure_again(lcomm_comm *comm, double links_s, double codecs_s) {
  lcomm_measure_budget budget = {.links_s = links_s, .codecs_s = codecs_s};
  uint32_t before = count_operations(comm);
  comm->topo.codec_cost[LCOMM_AUTO_INT8] = (lcomm_codec_cost){0};
  comm->topo.cost[LCOMM_LINK_NET] = (lcomm_link_cost){.assumed = true};
  require(lcomm_costs_measure_within(comm, &budget) == LCOMM_OK, "%s", lcomm_last_error(comm));
  return (int)(count_operations(comm) - before);
}

static void require_figures(const lcomm_comm *comm) {
  lcomm_auto_figures it = lcomm_auto_figures_of(&comm->topo);
  require(same_everywhere(&it, sizeof it), "ranks have different figures");
  require(it.latency_us > 0 && it.message_us > 0 && it.bandwidth_gb_s > 0 &&
              !comm->topo.cost[LCOMM_LINK_NET].assumed,
          "%g us, %g us a message, %g GB/s", it.latency_us, it.message_us, it.bandwidth_gb_s);
  for (int i = 0; i < LCOMM_AUTO_CODECS; i++) {
    bool lossy = lcomm_auto_candidate(i).format.codec->id != LCOMM_CODEC_NONE;
    require(!lossy || (it.codec[i].encode_gb_s > 0 && it.codec[i].decode_gb_s > 0),
            "codec %d has no speed", i);
  }
}

static void without_time_each_thing_is_tried_as_often_as_gives_a_figure(void) {
  lcomm_comm *comm = make_comm("net=auto:topk", NODES);
  int operations = measure_again(comm, 0, 0);
  require(operations == LEAST, "%d operations", operations);
  require_figures(comm);
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

static void with_any_time_there_is_an_end(void) {
  lcomm_comm *comm = make_comm("net=auto:topk", NODES);
  int operations = measure_again(comm, NEVER_S, NEVER_S);
  require(operations > LEAST && operations <= MOST, "%d operations", operations);
  require_figures(comm);
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

/* Also ranks whose clocks say that there is time left, as only rank 0's counts. */
static void rank_0_says_when_the_time_is_over(void) {
  lcomm_comm *comm = make_comm("net=auto:topk", NODES);
  int operations = measure_again(comm, mpi_rank == 0 ? 0 : NEVER_S, 0);
  require(operations == LEAST, "%d operations", operations);
  operations = measure_again(comm, mpi_rank == 0 ? NEVER_S : 0, 0);
  require(operations > LEAST, "%d operations", operations);
  require_figures(comm);
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

static const mpi_property properties[] = {
    PROPERTY(without_time_each_thing_is_tried_as_often_as_gives_a_figure),
    PROPERTY(with_any_time_there_is_an_end),
    PROPERTY(rank_0_says_when_the_time_is_over),
};
RUN_PROPERTIES(mpi_property_main, properties)

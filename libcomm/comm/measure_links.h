/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_COMM_MEASURE_LINKS_H
#define LCOMM_COMM_MEASURE_LINKS_H

/* What the links between nodes cost, by the time that exact sums take: measure_links.c makes the
 * sums, measure_fit.c finds the figures. */

#include "libcomm/engine/engine.h"
#include "libcomm/plan/auto_figures.h"

enum {
  LCOMM_MEASURE_SHORT = 1, /* elements of a short sum */
  LCOMM_MEASURE_FEW = 2,   /* chunks; one alone goes another way through the engine */
  LCOMM_MEASURE_MANY = 16
};

/* What sums took at least, as rank 0 has seen them. */
typedef struct lcomm_sum_times {
  double short_s;
  double few_s, many_s; /* in so many chunks */
  double long_s;
  uint64_t long_count; /* elements of that one */
} lcomm_sum_times;

/* Time them. Once rank 0 has spent `within_s` no more are made than give a figure each, so a
 * processor that others use does not make this long. Collective; errors as of an all-reduce. */
lcomm_status lcomm_links_time(lcomm_comm *comm, double within_s, lcomm_sum_times *times);

/* The figures with which lcomm_plan_predict() gives these times. So they hold what the model leaves
 * out, too: processors that ranks share, and several senders at one receiver. What a plan can fail
 * with. */
lcomm_status lcomm_links_fit(lcomm_comm *comm, const lcomm_sum_times *times,
                             lcomm_auto_figures *figures);

/* The same bytes for all ranks, those of rank 0; whole words. Errors as of a broadcast. */
lcomm_status lcomm_measure_tell(lcomm_comm *comm, void *bytes, size_t size);

/* The sum in many chunks of an element for each rank; with one element more for each number of
 * chunks, by which the runs are told apart. */
static inline lcomm_allreduce_shape lcomm_measure_shape(const lcomm_comm *comm, uint32_t chunks) {
  return (lcomm_allreduce_shape){.exchange = LCOMM_EXCHANGE_GATHER,
                                 .hierarchical = comm->topo.nodes < comm->topo.size,
                                 .chunks = chunks};
}

static inline uint64_t lcomm_measure_count(const lcomm_comm *comm, uint32_t chunks) {
  return (uint64_t)LCOMM_MEASURE_MANY * (uint64_t)comm->size + chunks;
}

#endif

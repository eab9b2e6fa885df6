/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_COMM_MEASURE_H
#define LCOMM_COMM_MEASURE_H

/* What links and codecs cost, measured for net=auto: by exact sums between the nodes and by the
 * kernels, some 50 ms together. Rank 0 measures, all ranks take its figures, so they choose
 * alike. measure.c has the order, measure_links.h what links cost, measure_codecs.h what codecs do.
 */

#include "libcomm/engine/engine.h"

/* Measure, where the policy chooses by itself, there are links between nodes, and it was not done
 * before; links only where LCOMM_TOPO_FILE gives no figures. Collective, with no operation in
 * flight; errors as of an all-reduce. */
lcomm_status lcomm_costs_measure(lcomm_comm *comm);

/* The same with other times. Where they are used up, because a link is slow or others use the
 * processors, everything is tried only as often as gives a figure: 9 operations at least, 61 at
 * most, and each codec once or three times. */
typedef struct lcomm_measure_budget {
  double links_s, codecs_s;
} lcomm_measure_budget;
lcomm_status lcomm_costs_measure_within(lcomm_comm *comm, const lcomm_measure_budget *budget);

/* A part of a communicator has its figures. What fails is the part's sticky error. */
void lcomm_costs_inherit(lcomm_comm *part, const lcomm_comm *whole);

#endif

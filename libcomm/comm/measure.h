/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_COMM_MEASURE_H
#define LCOMM_COMM_MEASURE_H

/* What links and codecs cost, measured for net=auto: by exact sums between the nodes and by the
 * kernels, some 50 ms together. Rank 0 measures, all ranks take its figures, so they choose
 * alike. */

#include "libcomm/engine/engine.h"

/* Measure, where the policy chooses by itself, there are links between nodes, and it was not done
 * before; links only where LCOMM_TOPO_FILE gives no figures. Collective, with no operation in
 * flight; errors as of an all-reduce. */
lcomm_status lcomm_costs_measure(lcomm_comm *comm);

/* A part of a communicator has its figures. What fails is the part's sticky error. */
void lcomm_costs_inherit(lcomm_comm *part, const lcomm_comm *whole);

#endif

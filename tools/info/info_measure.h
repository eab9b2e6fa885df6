/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_INFO_INFO_MEASURE_H
#define LCOMM_TOOLS_INFO_INFO_MEASURE_H

/* What the links between the ranks of this run really cost. */

#include "libcomm/engine/engine.h"
#include "tools/info/info_options.h"

enum { INFO_REMARK_MAX = 320 };

/* Of one link class, measured between its first two ranks. */
typedef struct info_link {
  int first, second; /* lowest numbers, first < second; -1: the class does not occur */
  lcomm_link_cost cost;
  char remark[INFO_REMARK_MAX]; /* between whom and how, for people */
} info_link;

/* Measure every link class that occurs. Collective; costs and remarks are known to
 * rank 0 only. A failure is one of the communicator. */
lcomm_status info_measure(lcomm_comm *comm, info_link links[LCOMM_LINK_COUNT]);

/* Measure between all ranks of MPI_COMM_WORLD and print their topology with what
 * was measured, as text that loads back. Collective; the exit status, but after a
 * failure among several ranks it ends the run. */
int info_print_measured(const info_options *o);

#endif

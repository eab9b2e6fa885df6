/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_TIMELINE_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_TIMELINE_H

/* What simulated ranks do, as trace events for Perfetto, in the rows that traces of real runs
 * have (LCOMM_TRACE). The first ranks only, and no more events than a viewer takes. */

#include "libcomm/observe/trace_file.h"
#include "tools/simulation/simulate_program.h"

enum { SIMULATE_TIMELINE_RANKS_MAX = 16, SIMULATE_TIMELINE_ROWS = 16 };

typedef struct simulate_timeline {
  lcomm_trace_file file;
  int ranks;
  uint64_t events, left_out;
  bool known[SIMULATE_TIMELINE_RANKS_MAX][LCOMM_TRACE_GROUPS][SIMULATE_TIMELINE_ROWS];
  simulate_time until[SIMULATE_TIMELINE_RANKS_MAX][LCOMM_TRACE_GROUPS][SIMULATE_TIMELINE_ROWS];
} simulate_timeline;

/* false with a sentence in `why` (SIMULATE_WHY_MAX bytes). */
bool simulate_timeline_begin(simulate_timeline *timeline, const char *path, const lcomm_topo *topo,
                             int ranks, char *why);
/* false, with a sentence, where not all could be written. */
bool simulate_timeline_end(simulate_timeline *timeline, char *why);

/* run: which bucket of which training step. */
void simulate_timeline_operation(simulate_timeline *timeline, uint32_t rank, uint32_t run,
                                 uint64_t size, simulate_time begin, simulate_time end);
void simulate_timeline_message(simulate_timeline *timeline, uint32_t rank, uint32_t run,
                               uint32_t index, const simulate_step *step, simulate_time begin,
                               simulate_time end);
void simulate_timeline_computation(simulate_timeline *timeline, uint32_t rank, uint32_t run,
                                   uint32_t index, lcomm_step_kind kind, simulate_time begin,
                                   simulate_time end);
void simulate_timeline_copy(simulate_timeline *timeline, uint32_t rank, uint32_t run,
                            simulate_time begin, simulate_time end);
void simulate_timeline_backward(simulate_timeline *timeline, uint32_t rank, simulate_time begin,
                                simulate_time end);

#endif

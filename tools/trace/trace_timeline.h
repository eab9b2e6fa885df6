/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_TRACE_TRACE_TIMELINE_H
#define LCOMM_TOOLS_TRACE_TRACE_TIMELINE_H

/* The second pass: all traces in one file, on rank 0's clock, with an arrow
 * from each send to its receive. Events of a file keep their order. */

#include "tools/trace/trace_match.h"

/* Give every process a number of its own in the viewer: its rank if it is free.
 * Communicators of one process share it. */
void lcomm_trace_merge_processes(lcomm_trace_survey *surveys, size_t count);

/* Write all to `output`. The files must be as they were surveyed. On false a
 * sentence is in `why` (LCOMM_TRACE_WHY_MAX bytes). */
bool lcomm_trace_merge_write(const lcomm_trace_survey *surveys, size_t count,
                             const lcomm_trace_match *match, FILE *output, char *why);

#endif

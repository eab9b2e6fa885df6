/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_TRACE_TRACE_REPORT_H
#define LCOMM_TOOLS_TRACE_TRACE_REPORT_H

/* What the traces show, as a table, and what is odd about them, in sentences. */

#include "tools/trace/trace_match.h"

/* false: out of memory. */
bool lcomm_trace_report_table(const lcomm_trace_survey *surveys, size_t count,
                              const lcomm_trace_match *match, FILE *file);

/* One line each: files of different runs, ranks that are missing or there
 * twice, traces that end early, messages without a partner, clocks that
 * contradict each other. Returns how many. */
size_t lcomm_trace_report_oddities(const lcomm_trace_survey *surveys, size_t count,
                                   const lcomm_trace_match *match, FILE *file);

#endif

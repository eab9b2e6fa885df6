/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_COMMON_TOOL_PROGRESS_H
#define LCOMM_TOOLS_COMMON_TOOL_PROGRESS_H

/* A bar on standard error while work goes on, when that is a terminal; nothing
 * at all when it is not. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tool_progress {
  bool shown;
  uint64_t total, done; /* units of work */
  double begin;         /* seconds of CLOCK_MONOTONIC */
} tool_progress;

tool_progress tool_progress_begin(uint64_t total);

/* Say what comes next. */
void tool_progress_next(const tool_progress *progress, const char *what);

/* Units that are done. */
void tool_progress_add(tool_progress *progress, uint64_t units);

/* Take the bar away. */
void tool_progress_end(const tool_progress *progress);

/* The bar's line for a terminal that is `columns` wide, without an end of
 * line: what follows is cut, and no byte of it moves the cursor. */
void tool_progress_line(const tool_progress *progress, double seconds, const char *what,
                        size_t columns, char *line, size_t size);

#endif

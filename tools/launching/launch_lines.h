/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_LAUNCH_LINES_H
#define LCOMM_TOOLS_LAUNCH_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What a rank writes, line by line, with the rank before it: whole lines are passed on, so those of
 * several ranks do not mix. Longer ones than LAUNCH_LINE_MAX are broken. */

enum { LAUNCH_LINE_MAX = 8192, LAUNCH_PREFIX_SIZE = 24 };

typedef struct launch_lines {
  int from; /* a pipe that does not block; -1: it is over */
  FILE *to;
  char prefix[LAUNCH_PREFIX_SIZE];
  char text[LAUNCH_LINE_MAX]; /* of a line that is not over */
  size_t used;
} launch_lines;

/* Pass on what is there. false: `to` takes nothing any more. Where the other end was closed, `from`
 * is closed as well. */
bool launch_lines_read(launch_lines *self);

/* What is left, also of a line that is not over; then `from` is closed. */
bool launch_lines_end(launch_lines *self);

#endif

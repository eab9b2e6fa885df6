/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_TRACE_TRACE_SOURCE_H
#define LCOMM_TOOLS_TRACE_TRACE_SOURCE_H

/* The trace file of one rank, read line by line; of any size. */

#include <stdio.h>

#include "tools/trace/trace_item.h"

enum { LCOMM_TRACE_WHY_MAX = 512 };

typedef struct lcomm_trace_source {
  FILE *file;
  const char *path; /* not copied */
  uint64_t lines;
  bool closed; /* the array ended as it should */
  bool cut;    /* the last line was cut off */
  char line[LCOMM_TRACE_LINE_MAX];
} lcomm_trace_source;

typedef enum lcomm_trace_next {
  LCOMM_NEXT_ITEM,
  LCOMM_NEXT_END, /* also where a process died and left the array open */
  LCOMM_NEXT_BAD  /* with a sentence */
} lcomm_trace_next;

/* Open a file; the first item, its origin, is read by next as any other. On
 * false a sentence is in `why` (LCOMM_TRACE_WHY_MAX bytes). */
bool lcomm_trace_source_open(lcomm_trace_source *source, const char *path, char *why);
void lcomm_trace_source_close(lcomm_trace_source *source);

/* The next item. The first one is an ORIGIN, and no other. */
lcomm_trace_next lcomm_trace_source_next(lcomm_trace_source *source, lcomm_trace_item *item,
                                         char *why);

#endif

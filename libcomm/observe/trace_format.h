/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_OBSERVE_TRACE_FORMAT_H
#define LCOMM_OBSERVE_TRACE_FORMAT_H

/* The text of a trace, shared by the library and tools/trace_merge: one JSON
 * object a line, without the comma between lines. Whatever the names hold, a line
 * is valid JSON in valid UTF-8.
 *
 * What trace_merge needs besides the viewers' own fields stands in the args of
 * metadata events that viewers know, so that they have nothing to complain of.
 */

#include "libcomm/observe/trace.h"

enum {
  LCOMM_TRACE_LINE_MAX = 8192,
  LCOMM_TRACE_HOST_MAX = 64,
  LCOMM_TRACE_TEXT_MAX = 3 * LCOMM_TRACE_NAME_MAX /* of a string: U+FFFD takes three bytes */
};

/* Times that a file may hold: any clock, and sums of some of them in 64 bits. */
#define LCOMM_TRACE_SECONDS_MAX INT64_C(1000000000)

typedef struct lcomm_trace_line {
  char text[LCOMM_TRACE_LINE_MAX];
  size_t length;
} lcomm_trace_line;

/* Rows of the viewer (its threads). A group of rows holds events of one sort;
 * within it, an event goes to the first row that is free when it begins. */
enum {
  LCOMM_TRACE_GROUP_OPERATIONS,
  LCOMM_TRACE_GROUP_COMPUTE,
  LCOMM_TRACE_GROUP_WAIT,
  LCOMM_TRACE_GROUP_SEND, /* and one more for each further link class */
  LCOMM_TRACE_GROUP_RECV = LCOMM_TRACE_GROUP_SEND + LCOMM_LINK_COUNT,
  LCOMM_TRACE_GROUPS = LCOMM_TRACE_GROUP_RECV + LCOMM_LINK_COUNT,
  LCOMM_TRACE_ROWS_MAX = 256 /* of a group */
};

/* The group of an event. */
unsigned lcomm_trace_group(const lcomm_trace_event *event);

/* The number of a row, from 1; communicators of a process count from 1. */
uint32_t lcomm_trace_row(unsigned communicator, unsigned group, unsigned row);

/* Whose trace it is. */
typedef struct lcomm_trace_origin {
  int rank, size;
  char host[LCOMM_TRACE_HOST_MAX];
  unsigned communicator; /* of the process, from 1 */
  int process_rank;      /* rank in the first one; the viewer's process */
  long process;          /* of the system */
  int64_t base_s;        /* times of events count from here, so that no digit is lost */
} lcomm_trace_origin;

/* Where an event is shown. */
typedef struct lcomm_trace_place {
  int process_rank;
  uint32_t row;
  int64_t begin_ns, end_ns; /* from the base */
} lcomm_trace_place;

/* Each writes one line. */
void lcomm_trace_format_event(lcomm_trace_line *line, const lcomm_trace_event *event,
                              const lcomm_trace_place *place);
void lcomm_trace_format_origin(lcomm_trace_line *line, const lcomm_trace_origin *origin);
void lcomm_trace_format_run(lcomm_trace_line *line, const lcomm_trace_origin *origin, uint64_t run,
                            int node);
void lcomm_trace_format_clock(lcomm_trace_line *line, const lcomm_trace_origin *origin,
                              int64_t offset_ns, int64_t error_ns);
void lcomm_trace_format_row(lcomm_trace_line *line, const lcomm_trace_origin *origin,
                            unsigned group, unsigned row);
void lcomm_trace_format_sort(lcomm_trace_line *line, int process_rank, uint32_t row);

/* Append text; it never outgrows the line. */
__attribute__((format(printf, 2, 3))) void lcomm_trace_put(lcomm_trace_line *line,
                                                           const char *format, ...);
/* Append at most `size` bytes of a string, escaped, in quotes. What is no UTF-8
 * becomes U+FFFD. */
void lcomm_trace_put_quoted(lcomm_trace_line *line, const char *text, size_t size);
/* Append nanoseconds as microseconds, exactly. */
void lcomm_trace_put_us(lcomm_trace_line *line, int64_t time_ns);

#endif

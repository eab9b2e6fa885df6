/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_TRACE_TRACE_SURVEY_H
#define LCOMM_TOOLS_TRACE_TRACE_SURVEY_H

/* What is in the traces: the first of two passes over the files. */

#include "tools/trace/trace_source.h"

/* One side of a message. Times count from the base of its file. */
typedef struct lcomm_trace_message {
  uint64_t run;
  uint32_t sequence, message, row;
  int from, to;
  bool received;
  size_t survey; /* index of its file */
  int64_t begin_ns, end_ns;
} lcomm_trace_message;

typedef struct lcomm_trace_messages {
  lcomm_trace_message *all;
  size_t count, room;
} lcomm_trace_messages;

typedef struct lcomm_trace_survey {
  const char *path;
  lcomm_trace_origin origin;
  bool has_run, closed, cut;
  uint64_t run;
  int node;
  int64_t offset_ns, error_ns;
  uint64_t events;
  int64_t first_ns, last_ns; /* of events, from the base */
  double kind_ns[LCOMM_TRACE_KIND_COUNT];
  int64_t wire_ns; /* with a message under way */
  uint64_t sent_bytes[LCOMM_LINK_COUNT];
  int64_t slowest_ns; /* operation; -1: none */
  uint32_t slowest_sequence;
  char slowest[LCOMM_TRACE_TEXT_MAX], slowest_name[LCOMM_TRACE_TEXT_MAX];
  int viewer_process; /* in the merged file */
} lcomm_trace_survey;

/* Read the whole file `index`; its messages are appended. On false a sentence
 * is in `why` (LCOMM_TRACE_WHY_MAX bytes). */
bool lcomm_trace_survey_read(const char *path, size_t index, lcomm_trace_survey *survey,
                             lcomm_trace_messages *messages, char *why);

/* Where the time of a file is on rank 0's clock: add it to a time of the file. */
int64_t lcomm_trace_survey_base(const lcomm_trace_survey *survey);

#endif

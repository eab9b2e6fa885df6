/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_TRACE_TRACE_MATCH_H
#define LCOMM_TOOLS_TRACE_TRACE_MATCH_H

/* Which send belongs to which receive: both sides know the number of the
 * operation and of the message within it. */

#include "tools/trace/trace_survey.h"

typedef struct lcomm_trace_pair {
  const lcomm_trace_message *send, *receive;
} lcomm_trace_pair;

typedef struct lcomm_trace_match {
  lcomm_trace_pair *pairs;
  size_t pair_count;
  size_t lone_sends, lone_receives;      /* without a partner, though its trace is here */
  const lcomm_trace_message *first_lone; /* one of them; NULL: none */
  size_t backward;                       /* received before they were sent, by the clocks */
  int64_t backward_ns;                   /* by how much at most */
} lcomm_trace_match;

/* Sorts the messages. false: out of memory. Free match->pairs with free(). */
bool lcomm_trace_match_make(lcomm_trace_messages *messages, const lcomm_trace_survey *surveys,
                            size_t survey_count, lcomm_trace_match *match);

#endif

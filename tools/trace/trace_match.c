/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/trace/trace_match.h"

#include <stdlib.h>
#include <string.h>

static int order(uint64_t a, uint64_t b) {
  return (a > b) - (a < b);
}

/* Equal for both sides of a message. */
static int by_key(const lcomm_trace_message *a, const lcomm_trace_message *b) {
  int first = order(a->run, b->run);
  first = first ? first : order(a->sequence, b->sequence);
  first = first ? first : order((uint64_t)a->from, (uint64_t)b->from);
  first = first ? first : order((uint64_t)a->to, (uint64_t)b->to);
  return first ? first : order(a->message, b->message);
}

static int by_key_and_side(const void *a, const void *b) {
  const lcomm_trace_message *x = a, *y = b;
  int first = by_key(x, y);
  first = first ? first : (int)x->received - (int)y->received;
  return first ? first : (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static bool has_trace(const lcomm_trace_survey *surveys, size_t count, uint64_t run, int rank) {
  for (size_t i = 0; i < count; i++) {
    if (surveys[i].run == run && surveys[i].origin.rank == rank) {
      return true;
    }
  }
  return false;
}

static void note_lone(lcomm_trace_match *match, const lcomm_trace_message *message,
                      const lcomm_trace_survey *surveys, size_t survey_count) {
  int partner = message->received ? message->from : message->to;
  if (!has_trace(surveys, survey_count, message->run, partner)) {
    return;
  }
  match->lone_sends += !message->received;
  match->lone_receives += message->received;
  if (!match->first_lone) {
    match->first_lone = message;
  }
}

static void note_pair(lcomm_trace_match *match, const lcomm_trace_message *send,
                      const lcomm_trace_message *receive, const lcomm_trace_survey *surveys) {
  int64_t sent_ns = send->begin_ns + lcomm_trace_survey_base(&surveys[send->survey]);
  int64_t received_ns = receive->end_ns + lcomm_trace_survey_base(&surveys[receive->survey]);
  match->pairs[match->pair_count++] = (lcomm_trace_pair){send, receive};
  if (received_ns < sent_ns) {
    match->backward++;
    match->backward_ns =
        sent_ns - received_ns > match->backward_ns ? sent_ns - received_ns : match->backward_ns;
  }
}

/* One group of equal keys, sends first: paired in their order, should there be
 * more than one of each. */
static void match_group(lcomm_trace_match *match, const lcomm_trace_message *group, size_t count,
                        const lcomm_trace_survey *surveys, size_t survey_count) {
  size_t sends = 0;
  while (sends < count && !group[sends].received) {
    sends++;
  }
  size_t receives = count - sends, pairs = sends < receives ? sends : receives;
  for (size_t i = 0; i < pairs; i++) {
    note_pair(match, &group[i], &group[sends + i], surveys);
  }
  for (size_t i = pairs; i < sends; i++) {
    note_lone(match, &group[i], surveys, survey_count);
  }
  for (size_t i = sends + pairs; i < count; i++) {
    note_lone(match, &group[i], surveys, survey_count);
  }
}

bool lcomm_trace_match_make(lcomm_trace_messages *messages, const lcomm_trace_survey *surveys,
                            size_t survey_count, lcomm_trace_match *match) {
  lcomm_trace_message *all = messages->all;
  memset(match, 0, sizeof *match);
  match->pairs = malloc((messages->count / 2 + 1) * sizeof *match->pairs);
  if (!match->pairs) {
    return false;
  }
  if (messages->count > 0) {
    qsort(all, messages->count, sizeof *all, by_key_and_side);
  }
  for (size_t first = 0, end = 0; first < messages->count; first = end) {
    while (end < messages->count && by_key(&all[first], &all[end]) == 0) {
      end++;
    }
    match_group(match, all + first, end - first, surveys, survey_count);
  }
  return true;
}

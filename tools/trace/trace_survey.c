/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/trace/trace_survey.h"

#include <stdlib.h>
#include <string.h>

static bool append_message(lcomm_trace_messages *messages, const lcomm_trace_message *message) {
  if (messages->count == messages->room) {
    size_t room = messages->room > 0 ? 2 * messages->room : 1024;
    lcomm_trace_message *grown = realloc(messages->all, room * sizeof *grown);
    if (!grown) {
      return false;
    }
    messages->all = grown;
    messages->room = room;
  }
  messages->all[messages->count++] = *message;
  return true;
}

/* The run is filled in when the whole file is known. */
static bool keep_message(const lcomm_trace_survey *survey, size_t index,
                         const lcomm_trace_item *item, lcomm_trace_messages *messages) {
  const lcomm_trace_event *event = &item->event;
  int mine = survey->origin.rank;
  bool received = event->kind == LCOMM_TRACE_RECV;
  lcomm_trace_message message = {.sequence = event->sequence,
                                 .message = event->message,
                                 .row = item->place.row,
                                 .from = received ? event->peer : mine,
                                 .to = received ? mine : event->peer,
                                 .received = received,
                                 .survey = index,
                                 .begin_ns = item->place.begin_ns,
                                 .end_ns = item->place.end_ns};
  return append_message(messages, &message);
}

static void note_operation(lcomm_trace_survey *survey, const lcomm_trace_item *item,
                           int64_t duration_ns) {
  if (duration_ns <= survey->slowest_ns) {
    return;
  }
  survey->slowest_ns = duration_ns;
  survey->slowest_sequence = item->event.sequence;
  memcpy(survey->slowest, item->operation, sizeof(survey->slowest));
  memcpy(survey->slowest_name, item->name, sizeof(survey->slowest_name));
}

static bool take_event(lcomm_trace_survey *survey, size_t index, const lcomm_trace_item *item,
                       lcomm_trace_messages *messages) {
  const lcomm_trace_place *place = &item->place;
  const lcomm_trace_event *event = &item->event;
  int64_t duration_ns = place->end_ns - place->begin_ns;
  if (survey->events++ == 0) {
    survey->first_ns = place->begin_ns;
    survey->last_ns = place->end_ns;
  }
  survey->first_ns = place->begin_ns < survey->first_ns ? place->begin_ns : survey->first_ns;
  survey->last_ns = place->end_ns > survey->last_ns ? place->end_ns : survey->last_ns;
  survey->kind_ns[event->kind] += (double)duration_ns;
  if (event->kind == LCOMM_TRACE_OPERATION) {
    note_operation(survey, item, duration_ns);
  }
  if (event->kind == LCOMM_TRACE_SEND) {
    survey->sent_bytes[event->link] += event->bytes;
  }
  bool message = event->kind == LCOMM_TRACE_SEND || event->kind == LCOMM_TRACE_RECV;
  return !message || keep_message(survey, index, item, messages);
}

static bool take_item(lcomm_trace_survey *survey, size_t index, const lcomm_trace_item *item,
                      lcomm_trace_messages *messages) {
  switch (item->kind) {
  case LCOMM_ITEM_ORIGIN:
    survey->origin = item->origin;
    return true;
  case LCOMM_ITEM_RUN:
    survey->has_run = true;
    survey->run = item->run;
    survey->node = item->node;
    return true;
  case LCOMM_ITEM_CLOCK:
    survey->offset_ns = item->offset_ns;
    survey->error_ns = item->error_ns;
    return true;
  case LCOMM_ITEM_EVENT:
    return take_event(survey, index, item, messages);
  default:
    return true;
  }
}

/* ------------------------------------------------------------- wire time */

static int by_begin(const void *a, const void *b) {
  const lcomm_trace_message *x = a, *y = b;
  return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* The time that is covered by messages. */
static int64_t covered(lcomm_trace_message *messages, size_t count) {
  int64_t sum_ns = 0, until_ns = INT64_MIN;
  qsort(messages, count, sizeof *messages, by_begin);
  for (size_t i = 0; i < count; i++) {
    int64_t begin_ns = messages[i].begin_ns > until_ns ? messages[i].begin_ns : until_ns;
    if (messages[i].end_ns > begin_ns) {
      sum_ns += messages[i].end_ns - begin_ns;
      until_ns = messages[i].end_ns;
    }
  }
  return sum_ns;
}

/* -------------------------------------------------------------- the file */

bool lcomm_trace_survey_read(const char *path, size_t index, lcomm_trace_survey *survey,
                             lcomm_trace_messages *messages, char *why) {
  lcomm_trace_source source;
  lcomm_trace_item item;
  size_t before = messages->count;
  memset(survey, 0, sizeof *survey);
  survey->path = path;
  survey->slowest_ns = -1;
  if (!lcomm_trace_source_open(&source, path, why)) {
    return false;
  }
  lcomm_trace_next next = lcomm_trace_source_next(&source, &item, why);
  for (; next == LCOMM_NEXT_ITEM; next = lcomm_trace_source_next(&source, &item, why)) {
    if (!take_item(survey, index, &item, messages)) {
      snprintf(why, LCOMM_TRACE_WHY_MAX, "out of memory for the messages of %.300s", path);
      next = LCOMM_NEXT_BAD;
      break;
    }
  }
  lcomm_trace_source_close(&source);
  survey->closed = source.closed;
  survey->cut = source.cut;
  for (size_t i = before; i < messages->count; i++) {
    messages->all[i].run = survey->run;
  }
  if (messages->count > before) {
    survey->wire_ns = covered(messages->all + before, messages->count - before);
  }
  return next == LCOMM_NEXT_END;
}

int64_t lcomm_trace_survey_base(const lcomm_trace_survey *survey) {
  return survey->origin.base_s * INT64_C(1000000000) + survey->offset_ns;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_timeline.h"

#include <stdio.h>
#include <string.h>

enum { EVENTS_MAX = 2000000 };

static const char operation_name[] = "all-reduce";

/* ------------------------------------------------------------------- rows */

static lcomm_trace_origin origin_of(uint32_t rank) {
  return (lcomm_trace_origin){
      .rank = (int)rank, .size = 1, .host = "", .communicator = 1, .process_rank = (int)rank};
}

/* The first row that is free, else the last one. */
static unsigned find_row(simulate_timeline *timeline, uint32_t rank, unsigned group,
                         simulate_time begin, simulate_time end) {
  simulate_time *until = timeline->until[rank][group];
  unsigned row = 0;
  while (row < SIMULATE_TIMELINE_ROWS - 1 && until[row] > begin) {
    row++;
  }
  until[row] = end > until[row] ? end : until[row];
  return row;
}

static void introduce(simulate_timeline *timeline, uint32_t rank, unsigned group, unsigned row) {
  lcomm_trace_line line = {.length = 0};
  lcomm_trace_origin origin = origin_of(rank);
  timeline->known[rank][group][row] = true;
  lcomm_trace_format_row(&line, &origin, group, row);
  lcomm_trace_file_append(&timeline->file, &line);
  lcomm_trace_format_sort(&line, (int)rank, lcomm_trace_row(1, group, row));
  lcomm_trace_file_append(&timeline->file, &line);
}

static void add(simulate_timeline *timeline, uint32_t rank, const lcomm_trace_event *event,
                simulate_time begin, simulate_time end) {
  static lcomm_trace_line line;
  if (rank >= (uint32_t)timeline->ranks) {
    return;
  }
  if (timeline->events == EVENTS_MAX) {
    timeline->left_out++;
    return;
  }
  unsigned group = lcomm_trace_group(event);
  unsigned row = find_row(timeline, rank, group, begin, end);
  if (!timeline->known[rank][group][row]) {
    introduce(timeline, rank, group, row);
  }
  lcomm_trace_place place = {.process_rank = (int)rank,
                             .row = lcomm_trace_row(1, group, row),
                             .begin_ns = (int64_t)(begin / 1000),
                             .end_ns = (int64_t)(end / 1000)};
  lcomm_trace_format_event(&line, event, &place);
  lcomm_trace_file_append(&timeline->file, &line);
  timeline->events++;
}

/* ----------------------------------------------------------------- events */

void simulate_timeline_operation(simulate_timeline *timeline, uint32_t rank, uint32_t run,
                                 uint64_t size, simulate_time begin, simulate_time end) {
  lcomm_trace_event event = {.kind = LCOMM_TRACE_OPERATION,
                             .operation = operation_name,
                             .sequence = 2 * run + 1,
                             .peer = -1,
                             .bytes = size};
  add(timeline, rank, &event, begin, end);
}

void simulate_timeline_message(simulate_timeline *timeline, uint32_t rank, uint32_t run,
                               uint32_t index, const simulate_step *step, simulate_time begin,
                               simulate_time end) {
  bool sends = step->kind == LCOMM_STEP_SEND;
  lcomm_trace_event event = {.kind = sends ? LCOMM_TRACE_SEND : LCOMM_TRACE_RECV,
                             .operation = operation_name,
                             .sequence = 2 * run + 1,
                             .step = index,
                             .peer = (int)step->peer,
                             .message = step->message,
                             .link = (lcomm_link)step->link,
                             .bytes = step->work};
  add(timeline, rank, &event, begin, end);
}

void simulate_timeline_computation(simulate_timeline *timeline, uint32_t rank, uint32_t run,
                                   uint32_t index, lcomm_step_kind kind, simulate_time begin,
                                   simulate_time end) {
  lcomm_trace_event event = {.kind = (lcomm_trace_kind)kind,
                             .operation = operation_name,
                             .sequence = 2 * run + 1,
                             .step = index,
                             .peer = -1};
  add(timeline, rank, &event, begin, end);
}

void simulate_timeline_copy(simulate_timeline *timeline, uint32_t rank, uint32_t run,
                            simulate_time begin, simulate_time end) {
  lcomm_trace_event event = {
      .kind = LCOMM_TRACE_COPY, .operation = operation_name, .sequence = 2 * run + 1, .peer = -1};
  add(timeline, rank, &event, begin, end);
}

void simulate_timeline_backward(simulate_timeline *timeline, uint32_t rank, simulate_time begin,
                                simulate_time end) {
  lcomm_trace_event event = {
      .kind = LCOMM_TRACE_OPERATION, .operation = "forward and backward", .peer = -1};
  add(timeline, rank, &event, begin, end);
}

/* ------------------------------------------------------------------- file */

bool simulate_timeline_begin(simulate_timeline *timeline, const char *path, const lcomm_topo *topo,
                             int ranks, char *why) {
  memset(timeline, 0, sizeof *timeline);
  timeline->ranks = ranks < SIMULATE_TIMELINE_RANKS_MAX ? ranks : SIMULATE_TIMELINE_RANKS_MAX;
  snprintf(timeline->file.path, sizeof timeline->file.path, "%s", path);
  if (strlen(path) >= sizeof timeline->file.path ||
      lcomm_trace_file_open(&timeline->file) != LCOMM_OK) {
    snprintf(why, SIMULATE_WHY_MAX, "%.200s cannot be written: %s", path,
             strerror(timeline->file.error));
    return false;
  }
  for (int i = 0; i < timeline->ranks; i++) {
    lcomm_trace_line line = {.length = 0};
    lcomm_trace_origin origin = origin_of((uint32_t)i);
    origin.size = topo->size;
    snprintf(origin.host, sizeof origin.host, "%.*s", LCOMM_TRACE_HOST_MAX - 1, topo->host[i]);
    lcomm_trace_format_origin(&line, &origin);
    lcomm_trace_file_append(&timeline->file, &line);
  }
  return true;
}

bool simulate_timeline_end(simulate_timeline *timeline, char *why) {
  lcomm_trace_file_close(&timeline->file);
  if (timeline->file.error != 0) {
    snprintf(why, SIMULATE_WHY_MAX, "%.200s is not whole: %s", timeline->file.path,
             strerror(timeline->file.error));
  }
  return timeline->file.error == 0;
}

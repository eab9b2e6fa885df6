/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Calls of one communicator begin and end in order; several are under way at a time. */

#include "libcomm/interpose/mpi/line.h"

#include "libcomm/interpose/mpi/making.h"

/* As many as libcomm keeps runs for, so that no call makes memory of its own. */
enum { IN_FLIGHT_MAX = 8 };

/* A line for the communicator; there is always a spare one. */
static lcomm_interpose_line *line_of(lcomm_interpose_lines *lines, lcomm_interpose_comm *at) {
  lcomm_interpose_line **end = &lines->first;
  while (*end && (*end)->at != at) {
    end = &(*end)->next;
  }
  if (!*end) {
    *end = lines->spare;
    lines->spare = lines->spare->next;
    **end = (lcomm_interpose_line){.at = at};
  }
  return *end;
}

static void append(lcomm_interpose_line *line, lcomm_interpose_entry *entry) {
  entry->next = NULL;
  if (line->last) {
    line->last->next = entry;
  } else {
    line->first = entry;
  }
  line->last = entry;
  line->waiting = line->waiting ? line->waiting : entry;
}

void lcomm_interpose_line_up(lcomm_interpose_lines *lines, lcomm_interpose_entry *given) {
  while (given) {
    lcomm_interpose_entry *next = given->next;
    if (given->brings) {
      given->brings->next = lines->spare;
      lines->spare = given->brings;
      given->brings = NULL;
    }
    append(line_of(lines, given->call.at), given);
    given = next;
  }
}

void lcomm_interpose_line_drop(lcomm_interpose_lines *lines, lcomm_interpose_line **link) {
  lcomm_interpose_line *line = *link;
  *link = line->next;
  line->next = lines->spare;
  lines->spare = line;
}

/* One call at a time may use a residual. */
static bool residual_is_busy(const lcomm_interpose_line *line) {
  const lcomm_interpose_call *wanted = &line->waiting->call;
  bool has_one = wanted->feedback != LCOMM_INTERPOSE_PLAIN && wanted->of;
  for (const lcomm_interpose_entry *it = line->first; has_one && it != line->waiting;
       it = it->next) {
    if (it->call.feedback != LCOMM_INTERPOSE_PLAIN && it->call.of == wanted->of &&
        it->call.identity == wanted->identity) {
      return true;
    }
  }
  return false;
}

static bool begin_more(lcomm_interpose_line *line) {
  bool moved = false;
  while (line->waiting && line->begun < IN_FLIGHT_MAX && !residual_is_busy(line)) {
    lcomm_interpose_entry *it = line->waiting;
    it->status = lcomm_interpose_begin(&it->call, &it->request);
    it->over = it->status != LCOMM_OK;
    line->waiting = it->next;
    line->begun++;
    moved = true;
  }
  return moved;
}

/* A test moves all operations of the communicator. */
static bool is_over(lcomm_interpose_entry *oldest) {
  int done = 0;
  if (!oldest->over) {
    oldest->status = lcomm_test(oldest->call.home, &oldest->request, &done);
    oldest->over = done || oldest->status != LCOMM_OK;
  }
  return oldest->over;
}

static lcomm_interpose_entry *take_over(lcomm_interpose_line *line) {
  lcomm_interpose_entry *over = NULL, **end = &over;
  while (line->first != line->waiting && is_over(line->first)) {
    *end = line->first;
    end = &line->first->next;
    line->first = line->first->next;
    line->begun--;
  }
  *end = NULL;
  line->last = line->first ? line->last : NULL;
  return over;
}

bool lcomm_interpose_line_serve(lcomm_interpose_line *line, bool *moved,
                                lcomm_interpose_entry **over) {
  if (pthread_mutex_trylock(&line->at->lock) != 0) {
    return false;
  }
  lcomm_status made = LCOMM_OK;
  if (lcomm_interpose_home_is_made(line->at, &made)) { /* what went wrong, its calls will find */
    *moved |= begin_more(line);
    *over = take_over(line);
  }
  pthread_mutex_unlock(&line->at->lock);
  *moved |= *over != NULL;
  return true;
}

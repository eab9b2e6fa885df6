/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_events.h"

#include <stdlib.h>

enum { ARY = 4, ROOM_MIN = 256 };

simulate_time simulate_time_of(double seconds) {
  double ps = seconds * (double)SIMULATE_SECOND + 0.5;
  if (!(ps > 0)) {
    return 0;
  }
  return ps < (double)SIMULATE_TIME_MAX ? (simulate_time)ps : SIMULATE_TIME_MAX;
}

/* ------------------------------------------------------------------- heap */

static bool is_before(const simulate_event *a, const simulate_event *b) {
  return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static bool grow(simulate_events *events) {
  size_t room = events->room > 0 ? 2 * events->room : ROOM_MIN;
  simulate_event *heap = realloc(events->heap, room * sizeof *heap);
  if (!heap) {
    events->broken = true;
    return false;
  }
  events->heap = heap;
  events->room = room;
  return true;
}

void simulate_events_push(simulate_events *events, simulate_event event) {
  if (events->count == events->room && !grow(events)) {
    return;
  }
  size_t at = events->count++;
  event.order = events->pushed++;
  while (at > 0 && is_before(&event, &events->heap[(at - 1) / ARY])) {
    events->heap[at] = events->heap[(at - 1) / ARY];
    at = (at - 1) / ARY;
  }
  events->heap[at] = event;
}

static size_t earliest_child(const simulate_events *events, size_t at) {
  size_t first = at * ARY + 1, best = first;
  for (size_t i = first + 1; i < first + ARY && i < events->count; i++) {
    best = is_before(&events->heap[i], &events->heap[best]) ? i : best;
  }
  return best;
}

bool simulate_events_pop(simulate_events *events, simulate_event *event) {
  if (events->count == 0) {
    return false;
  }
  *event = events->heap[0];
  simulate_event last = events->heap[--events->count];
  size_t at = 0;
  while (at * ARY + 1 < events->count) {
    size_t child = earliest_child(events, at);
    if (!is_before(&events->heap[child], &last)) {
      break;
    }
    events->heap[at] = events->heap[child];
    at = child;
  }
  events->heap[at] = last;
  return true;
}

void simulate_events_free(simulate_events *events) {
  free(events->heap);
  *events = (simulate_events){0};
}

/* ------------------------------------------------------------------- fifo */

bool simulate_fifo_push(simulate_fifo *fifo, uint32_t item) {
  if (fifo->count == fifo->room) {
    uint32_t room = fifo->room > 0 ? 2 * fifo->room : ROOM_MIN;
    uint32_t *items = malloc(room * sizeof *items);
    if (!items) {
      return false;
    }
    for (uint32_t i = 0; i < fifo->count; i++) {
      items[i] = fifo->items[(fifo->first + i) % fifo->room];
    }
    free(fifo->items);
    fifo->items = items;
    fifo->first = 0;
    fifo->room = room;
  }
  fifo->items[(fifo->first + fifo->count++) % fifo->room] = item;
  return true;
}

bool simulate_fifo_pop(simulate_fifo *fifo, uint32_t *item) {
  if (fifo->count == 0) {
    return false;
  }
  *item = fifo->items[fifo->first];
  fifo->first = (fifo->first + 1) % fifo->room;
  fifo->count--;
  return true;
}

void simulate_fifo_free(simulate_fifo *fifo) {
  free(fifo->items);
  *fifo = (simulate_fifo){0};
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_EVENTS_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_EVENTS_H

/* The queue of events of a discrete-event simulation: a heap by time, and by the order of
 * insertion where times are equal, so that a simulation gives the same result every time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Picoseconds: whole numbers, so that sums do not depend on their order. 2^64 of them are 213
 * days. */
typedef uint64_t simulate_time;

#define SIMULATE_SECOND UINT64_C(1000000000000)

/* What a simulation may take: sums of some of them do not run over. */
#define SIMULATE_TIME_MAX (UINT64_MAX / 16)

static inline double simulate_seconds(simulate_time time) {
  return (double)time / (double)SIMULATE_SECOND;
}

/* A NaN and what is negative are 0; what is too long is SIMULATE_TIME_MAX. */
simulate_time simulate_time_of(double seconds);

typedef struct simulate_event {
  simulate_time at;
  uint64_t order;                 /* given by the queue */
  uint64_t size;                  /* bytes */
  uint32_t kind, rank, run, step; /* meaning is the user's */
} simulate_event;

/* Zeros are an empty queue. */
typedef struct simulate_events {
  simulate_event *heap;
  size_t count, room;
  uint64_t pushed;
  bool broken; /* memory ended: an event is missing */
} simulate_events;

void simulate_events_push(simulate_events *events, simulate_event event);

/* The earliest one; false: there is none. */
bool simulate_events_pop(simulate_events *events, simulate_event *event);

void simulate_events_free(simulate_events *events);

/* First in, first out, of numbers. Zeros are an empty one. */
typedef struct simulate_fifo {
  uint32_t *items;
  uint32_t first, count, room;
} simulate_fifo;

bool simulate_fifo_push(simulate_fifo *fifo, uint32_t item); /* false: no memory */
bool simulate_fifo_pop(simulate_fifo *fifo, uint32_t *item); /* false: empty */
void simulate_fifo_free(simulate_fifo *fifo);

#endif

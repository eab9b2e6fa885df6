/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_EVENT_H
#define LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_EVENT_H

/* Events as their two files see them: recorded and awaited (emulated_event.c), made and shared
 * (emulated_event_life.c). All with the lock. */

#include "tests/support/emulated/emulated_graph.h"

/* What processes share. */
typedef struct emulated_board {
  _Atomic uint64_t recorded, reached; /* how many records were made, how many are over */
  _Atomic uint64_t stream;            /* where the last one was made */
} emulated_board;

/* A record, or a page that is mapped. Held by the event and by tasks. */
typedef struct emulated_record {
  int holders;
  bool is_over;
  uint64_t stream;        /* where it was made, without a page */
  emulated_board *shared; /* of a page */
} emulated_record;

typedef struct emulated_event {
  struct emulated_event *next;
  int device;
  emulated_record *last; /* NULL: never recorded */
  emulated_record *page; /* NULL: of this process alone */
  int file;
  emulated_handle handle;
  bool is_opened;
  emulated_frontier captured; /* where it was recorded last, if in a capture */
} emulated_event;

/* NULL where there is no such event. */
emulated_event *emulated_event_find(void *handle);
emulated_record *emulated_record_hold(emulated_record *record);
void emulated_record_let_go(emulated_record *record); /* NULL ok */

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DOORS_MPI_LINE_H
#define LCOMM_DOORS_MPI_LINE_H

/* The calls of one communicator, waiting in line. Lines are the queue's thread's own. */

#include "libcomm/doors/mpi/queue.h"

struct lcomm_door_line;

/* A call in the queue. */
typedef struct lcomm_door_entry {
  lcomm_door_call call;
  lcomm_door_end end;
  void *context;
  lcomm_request request;
  lcomm_status status;
  bool over;
  struct lcomm_door_line *brings; /* an unused line that comes with the entry, or NULL */
  struct lcomm_door_entry *next;
} lcomm_door_entry;

/* First those that have begun. */
typedef struct lcomm_door_line {
  lcomm_door_comm *at;
  lcomm_door_entry *first, *last;
  lcomm_door_entry *waiting; /* the first that has not begun */
  int begun;
  struct lcomm_door_line *next;
} lcomm_door_line;

/* Lines in use, and others for later. There are never more lines than entries, so
 * each entry brings one when it is new. */
typedef struct lcomm_door_lines {
  lcomm_door_line *first, *spare;
} lcomm_door_lines;

/* Append entries, in order, to the lines of their communicators. */
void lcomm_door_line_up(lcomm_door_lines *lines, lcomm_door_entry *given);

/* Begin what can begin, and take those that are over off the line, oldest first. False when
 * another thread is inside libcomm with this communicator. */
bool lcomm_door_line_serve(lcomm_door_line *line, bool *moved, lcomm_door_entry **over);

/* Leave a line that is empty out. */
void lcomm_door_line_drop(lcomm_door_lines *lines, lcomm_door_line **link);

#endif

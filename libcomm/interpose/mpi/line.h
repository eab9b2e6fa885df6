/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_LINE_H
#define LCOMM_INTERPOSE_MPI_LINE_H

/* The calls of one communicator, waiting in line. Lines are the queue's thread's own. */

#include "libcomm/interpose/mpi/queue.h"

struct lcomm_interpose_line;

/* A call in the queue. */
typedef struct lcomm_interpose_entry {
  lcomm_interpose_call call;
  lcomm_interpose_end end;
  void *context;
  lcomm_request request;
  lcomm_status status;
  bool over;
  struct lcomm_interpose_line *brings; /* an unused line that comes with the entry, or NULL */
  struct lcomm_interpose_entry *next;
} lcomm_interpose_entry;

/* First those that have begun. */
typedef struct lcomm_interpose_line {
  lcomm_interpose_comm *at;
  lcomm_interpose_entry *first, *last;
  lcomm_interpose_entry *waiting; /* the first that has not begun */
  int begun;
  struct lcomm_interpose_line *next;
} lcomm_interpose_line;

/* Lines in use, and others for later. There are never more lines than entries, so
 * each entry brings one when it is new. */
typedef struct lcomm_interpose_lines {
  lcomm_interpose_line *first, *spare;
} lcomm_interpose_lines;

/* Append entries, in order, to the lines of their communicators. */
void lcomm_interpose_line_up(lcomm_interpose_lines *lines, lcomm_interpose_entry *given);

/* Begin what can begin, and take those that are over off the line, oldest first. False when
 * another thread is inside libcomm with this communicator. */
bool lcomm_interpose_line_serve(lcomm_interpose_line *line, bool *moved,
                                lcomm_interpose_entry **over);

/* Leave a line that is empty out. */
void lcomm_interpose_line_drop(lcomm_interpose_lines *lines, lcomm_interpose_line **link);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_STREAM_H
#define LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_STREAM_H

/* Streams of emulated devices as their parts see them: a thread, what it was given, and when it
 * may take that up. All with the lock. */

#include "tests/support/emulated/emulated_graph.h"

typedef struct emulated_stream {
  struct emulated_stream *next;
  int device;
  uint64_t number;
  pthread_t thread;
  pthread_cond_t given;         /* or it is its turn, or its end */
  emulated_task *first, *last;  /* the first one is in work, if is_busy */
  uint64_t put, done;           /* tasks so far */
  uint64_t goal;                /* done when all is over that somebody waits for */
  bool is_destroyed, has_ended; /* the thread goes on until it has nothing left */
  bool is_work, is_default, is_busy, is_chosen;
  int queue;                  /* -1: its own */
  emulated_frontier captured; /* how far it has come where it is captured */
  int branch;                 /* there */
} emulated_stream;

extern emulated_stream *emulated_streams;

/* The stream behind a handle, NULL where there is none. */
emulated_stream *emulated_stream_find(void *handle);
/* A stream for a branch of an executable graph, with a queue of its own; NULL: no thread. Without
 * the lock; ended at once, as far as its maker is concerned. */
void *emulated_branch_begin(int device);
void emulated_branch_end(void *stream);

/* --------------------------------------------------------------- emulated_turn.c */

/* A stream was given its last task, which has its place in the stream's queue until it begins. */
void emulated_turn_add(emulated_stream *s);
/* May the stream begin with its first task? Then it does. */
bool emulated_turn_take(emulated_stream *s);
/* It is over with it. */
void emulated_turn_end(emulated_stream *s);
/* Something happened that streams may wait for. */
void emulated_turn_look(void);
/* The stream whose task is before this one's in their queue; NULL. */
const emulated_stream *emulated_turn_before(const emulated_stream *s);
void emulated_turn_begin(void);

/* -------------------------------------------------------------- emulated_watch.c */

/* Somebody who waits: in which call, for whom. */
typedef struct emulated_watch {
  struct emulated_watch *next;
  const char *what, *whom;
  int thread;
  uint64_t moves;
  double since_s;
} emulated_watch;

void emulated_watch_begin(emulated_watch *watch, const char *what, const char *whom);
/* Wait a while for a change; where nothing has moved for long, say who waits for whom and end the
 * process. */
void emulated_watch_step(emulated_watch *watch);
void emulated_watch_end(emulated_watch *watch);
/* A task is over. */
void emulated_watch_moved(void);

#endif

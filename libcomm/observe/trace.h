/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_OBSERVE_TRACE_H
#define LCOMM_OBSERVE_TRACE_H

/* Traces: with LCOMM_TRACE=FILE every rank writes what it did, and when, to FILE.RANK (or RANK
 * takes the place of %d in FILE), as trace events that Perfetto and chrome://tracing show.
 * tools/trace_merge makes one file of those of all ranks, on one clock.
 *
 * A process may have several communicators. Each has a file of its own: from the second one on
 * the name has C.RANK instead of RANK, C counting the communicators of the process, and RANK always
 * the rank in the first one, so that parts of a split communicator do not meet in one file.
 *
 * The file is a JSON array with one event a line. A process that dies leaves the array open,
 * which viewers accept. Rows in the viewer: a process per rank, in it one row for operations as a
 * whole, one for computations, one for waiting, and one for the sends and the receives of each link
 * class, each with more rows below it as far as events overlap.
 *
 * Off, it costs one branch; on, one copy of about 200 bytes an event. Events go to the file once
 * a second, by whoever adds one or waits; when the memory for EVENTS_MAX of them is full; at
 * lcomm_trace_flush and at the end. So a process that is killed loses the last second, and what
 * came before a computation that it is in. A file that cannot be written, or no longer, ends the
 * trace, never the run: the ranks of a host have one that says so, once, as a warning.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/base/error.h"
#include "libcomm/include/libcomm.h"

typedef struct lcomm_trace lcomm_trace;

enum {
  LCOMM_TRACE_EVENTS_MAX = 16384, /* kept in memory */
  LCOMM_TRACE_NAME_MAX = 64,      /* of a tensor, with the terminator; longer ones are cut */
  LCOMM_TRACE_CODEC_MAX = 32,
  LCOMM_TRACE_VERSION = 1
};

/* What an event is about. The first five are the step kinds, in their order.
 * X(name, text, lane): lanes are C compute, M messages, W waiting, O operations. */
#define LCOMM_TRACE_KIND_LIST(X)                                                                   \
  X(LCOMM_TRACE_ENCODE, "encode", 'C')                                                             \
  X(LCOMM_TRACE_SEND, "send", 'M')                                                                 \
  X(LCOMM_TRACE_RECV, "recv", 'M')                                                                 \
  X(LCOMM_TRACE_DECODE, "decode", 'C') /* with the lossless stage */                               \
  X(LCOMM_TRACE_REDUCE, "reduce", 'C')                                                             \
  X(LCOMM_TRACE_COPY, "copy", 'C')           /* between callers' buffers and the vector */         \
  X(LCOMM_TRACE_WAIT, "wait", 'W')           /* nothing to do but wait */                          \
  X(LCOMM_TRACE_WRITE, "write trace", 'W')   /* the trace itself was written */                    \
  X(LCOMM_TRACE_GUARD, "guard", 'C')         /* a tensor was compared with its exact sum */        \
  X(LCOMM_TRACE_OPERATION, "operation", 'O') /* from start to end; shown by operation's name */

typedef enum lcomm_trace_kind {
#define LCOMM_TRACE_KIND_ENUM(name, text, lane) name,
  LCOMM_TRACE_KIND_LIST(LCOMM_TRACE_KIND_ENUM)
#undef LCOMM_TRACE_KIND_ENUM
      LCOMM_TRACE_KIND_COUNT
} lcomm_trace_kind;

/* Of LCOMM_TRACE_GUARD, as in lcomm_guard_figures. */
typedef struct lcomm_trace_guard {
  double error, cosine, residual;
  uint64_t waited;
} lcomm_trace_guard;

/* Of LCOMM_TRACE_OPERATION, where it sums factors of matrices (low rank). */
typedef struct lcomm_trace_factor {
  uint32_t sum;                     /* 1: of P, 2: of Q, behind it; 0: no such operation */
  uint32_t rank;                    /* 1 and more */
  uint64_t elements, rows, columns; /* of all matrices together; 1 and more */
} lcomm_trace_factor;

typedef struct lcomm_trace_event {
  lcomm_trace_kind kind;
  double begin_s, end_s; /* of lcomm_clock_s(); of a message: posted, over */
  /* Of the operation; NULL and the numbers meaningless when there is none. */
  const char *operation; /* lcomm_collective_name(); static text */
  uint32_t sequence;     /* its number */
  uint32_t step;         /* in the schedule; not of LCOMM_TRACE_OPERATION and later kinds */
  int peer;              /* rank, -1: none */
  uint32_t message;      /* with a peer: lcomm_step.message, by which both sides know it */
  lcomm_link link;       /* with a peer */
  uint64_t bytes;        /* on the wire; of a payload; of the data of an operation */
  const char *name;      /* tensor or bucket, copied; NULL: none */
  const char *codec;     /* copied; NULL: none */
  uint64_t waited;       /* of ENCODE: entries of top-k that found no room */
  lcomm_trace_guard guard;
  lcomm_trace_factor factor;
} lcomm_trace_event;

/* As the environment says; *trace is NULL when LCOMM_TRACE is not set, and then
 * none of the functions below is called. `host` is copied. The file is made
 * here: SYSTEM when that cannot be done, ARGUMENT, MEMORY, with a sentence in
 * `why`. Any thread. */
lcomm_status lcomm_trace_create(int rank, int size, const char *host, lcomm_trace **trace,
                                lcomm_why *why);

/* Read LCOMM_TRACE_STEPS; NULL: all steps. ARGUMENT, with a sentence in `why`. */
typedef struct lcomm_trace_steps {
  uint64_t first, last;
} lcomm_trace_steps;
lcomm_status lcomm_trace_steps_parse(const char *text, lcomm_trace_steps *steps, lcomm_why *why);

/* A step begins, counted from 0: from here on events are those of this step. Of a communicator
 * without tensors each call begins the next step. Before the first of these calls events belong
 * to step 0. Events of steps that nobody asked for are dropped; a message or an operation that
 * spans steps belongs to the one in which it ends. */
void lcomm_trace_step(lcomm_trace *trace, uint64_t step);
void lcomm_trace_next_step(lcomm_trace *trace);

/* Write what is left and close the array. NULL is allowed. */
void lcomm_trace_destroy(lcomm_trace *trace);

/* Once the ranks know each other: a number that all ranks of this communicator
 * share and no other communicator has, and the node of this rank. */
void lcomm_trace_run(lcomm_trace *trace, uint64_t run, int node);

/* What to add to this host's clock to have rank 0's, and by how much that may
 * be wrong. Without this call: the same clock. */
void lcomm_trace_clock(lcomm_trace *trace, double offset_s, double error_s);

/* Flush when the process exits without lcomm_trace_destroy. guard: held by
 * whoever adds events, when another thread than the one that calls exit() may;
 * else NULL. It must stay valid until lcomm_trace_destroy. */
void lcomm_trace_watch(lcomm_trace *trace, pthread_mutex_t *guard);

/* This rank warns of lost traces for all ranks of its host; without this call a loss is logged at
 * level error only. */
void lcomm_trace_speak(lcomm_trace *trace);

/* A trace that could not be begun or goes on no more: a warning the first time in
 * this process, an error in the log after that. Any thread. */
void lcomm_trace_lost(const char *sentence);

/* Bring events to the file that were added more than a second ago. Cheap; called by the thread that
 * makes progress on the communicator, in each round. */
void lcomm_trace_tick(lcomm_trace *trace);

/* Add an event that has ended. Called by the thread that makes progress on the communicator. */
void lcomm_trace_add(lcomm_trace *trace, const lcomm_trace_event *event);

/* Bring all events to the file, because the process may not live much longer:
 * after a failure. Not on the data path. */
void lcomm_trace_flush(lcomm_trace *trace);

const char *lcomm_trace_kind_name(lcomm_trace_kind kind);

/* -------------------------------------------------------- aligning clocks */

/* One ping-pong with rank 0: when it was sent and answered by the clock here,
 * and rank 0's clock in between. */
typedef struct lcomm_clock_sample {
  double sent_s, remote_s, received_s;
} lcomm_clock_sample;

/* What to add to the clock here to have rank 0's: the sample with the shortest
 * round trip counts, and half of that trip is the error. false when no sample
 * makes sense (none at all, an answer before its question). Pure. */
bool lcomm_trace_offset(const lcomm_clock_sample *samples, size_t count, double *offset_s,
                        double *error_s);

#endif

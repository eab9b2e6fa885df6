/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CALL_CALL_WATCH_H
#define LCOMM_CALL_CALL_WATCH_H

/* net=auto, revised by calls, plain ones and those with a residual. Calls on which it acts are
 * counted by their plan when they start, on all ranks alike because all make the same calls in the
 * same order, and timed. After the 4th, 16th, 64th and each 256th of a plan rank 0 compares the
 * least time with the predicted one, corrects its figures where they differ by half, and tells all
 * ranks; plans that net=auto chose are then made anew. All ranks are at one place only where a call
 * blocks: there its own plan is compared, and one of calls that did not block and have come to
 * such a number since. A call that does not block is timed where that says something: nothing else
 * was in flight, and it moved all the time, because the program waited for it at once or there is a
 * progress thread. Nothing hides behind a call.
 *
 * The figures are of calls alone: tensors have theirs, in lcomm_comm.topo, because ranks start
 * buckets at other places between the calls. */

#include "libcomm/call/call.h"
#include "libcomm/plan/auto_figures.h"

enum { LCOMM_CALL_WATCH_PLANS = 256 };

/* Calls that followed one plan. */
typedef struct lcomm_watched_plan {
  uint64_t hash, calls;
  double least_s; /* since the last comparison; 0: none is over. The first call opens connections */
  bool due;       /* calls that did not block: the next one that does compares */
  lcomm_plan_request request; /* of those; what it points to is not kept */
} lcomm_watched_plan;

typedef struct lcomm_call_watch {
  lcomm_topo topo; /* that of the communicator, whose lists it borrows, with figures of calls */
  lcomm_auto_trust trust;                           /* of rank 0 */
  uint64_t revisions;                               /* of the figures, the same on all ranks */
  unsigned due;                                     /* how many plans are */
  lcomm_watched_plan plans[LCOMM_CALL_WATCH_PLANS]; /* by hash; a new one takes its place */
} lcomm_call_watch;

/* Begin with the figures of the communicator, where net=auto acts between nodes; else end. MEMORY,
 * sticky. */
lcomm_status lcomm_call_watch_renew(lcomm_comm *comm);
void lcomm_call_watch_free(lcomm_comm *comm);

/* A call that is watched starts; it has started as `operation`, if not all of it is over. */
void lcomm_call_watch_start(lcomm_comm *comm, const lcomm_call *call);
void lcomm_call_watch_begin(lcomm_comm *comm, lcomm_operation *operation);

/* The call that started it returns: what it moved until then took no time of the program's. */
void lcomm_call_watch_return(lcomm_operation *operation);

/* The request of an operation is waited for or tested; it is over, and collected. */
void lcomm_call_watch_wait(lcomm_operation *operation);
void lcomm_call_watch_collect(lcomm_comm *comm, const lcomm_operation *operation);

/* A blocking call took so long. Collective at the agreed calls; errors as of an all-reduce. */
lcomm_status lcomm_call_watch_over(lcomm_comm *comm, const lcomm_call *call, double taken_s);

#endif

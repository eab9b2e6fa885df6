/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CALL_CALL_WATCH_H
#define LCOMM_CALL_CALL_WATCH_H

/* net=auto, revised by plain calls. Blocking calls on which it acts are counted by their plan, on
 * all ranks alike because all make the same calls in the same order, and timed. After the 4th,
 * 16th, 64th and each 256th of a plan rank 0 compares the least time with the predicted one,
 * corrects its figures where they differ by half, and tells all ranks; runs that net=auto chose are
 * then made anew. Calls that do not block may overlap anything, so they are not counted: they
 * follow the figures in force. Nothing hides behind a blocking call.
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
} lcomm_watched_plan;

typedef struct lcomm_call_watch {
  lcomm_topo topo; /* that of the communicator, whose lists it borrows, with figures of calls */
  lcomm_auto_trust trust;                           /* of rank 0 */
  lcomm_watched_plan plans[LCOMM_CALL_WATCH_PLANS]; /* by hash; a new one takes its place */
} lcomm_call_watch;

/* Begin with the figures of the communicator, where net=auto acts between nodes; else end. MEMORY,
 * sticky. */
lcomm_status lcomm_call_watch_renew(lcomm_comm *comm);
void lcomm_call_watch_free(lcomm_comm *comm);

/* A blocking call that followed the plan of this hash, chosen by net=auto, took so long. Collective
 * at the agreed calls; errors as of an all-reduce. */
lcomm_status lcomm_call_watch_over(lcomm_comm *comm, const lcomm_plan_request *request,
                                   uint64_t plan_hash, double taken_s);

#endif

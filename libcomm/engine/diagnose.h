/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_DIAGNOSE_H
#define LCOMM_ENGINE_DIAGNOSE_H

/* Diagnosis of a time-out: why an operation does not move.
 *
 * From half the time-out on a rank that waits asks all ranks that it awaits what they wait for, and
 * so on (probe.h): an operation needs all messages that it waits for, so one rank that is stuck is
 * enough to stop it. The search ends at ranks that do not answer, that answer but wait for nobody,
 * at two that do not hear each other, or has gone around. At the time-out that end is the fault,
 * not the rank that happens to be awaited.
 */

#include "libcomm/engine/operation.h"

/* Ends of the search, the stronger ones later. */
typedef enum lcomm_wait_end {
  LCOMM_END_NONE,
  LCOMM_END_CYCLE,     /* all wait for each other */
  LCOMM_END_WORKS,     /* computes */
  LCOMM_END_PASSED,    /* is through with the operation in which it is awaited */
  LCOMM_END_DEVICE,    /* waits for its device */
  LCOMM_END_IDLE,      /* answers, but is in no call */
  LCOMM_END_ELSEWHERE, /* likewise, and its program waits in another communicator */
  LCOMM_END_LINK,      /* is not heard by the rank that awaits it, but by others */
  LCOMM_END_ASKED,     /* has not answered yet */
  LCOMM_END_SILENT     /* does not answer */
} lcomm_wait_end;

/* One rank that waits for another. */
typedef struct lcomm_wait_edge {
  lcomm_wait_end end;
  int waiter, last;
  int32_t collective; /* of the waiter */
  uint32_t sequence, step;
  lcomm_fingerprint fingerprint; /* of the same operation */
} lcomm_wait_edge;

/* What other ranks answer about a rank that does not answer, and about its host. */
typedef struct lcomm_witnesses {
  int asked, answered;
  bool denied;           /* one says that the rank does not answer it either */
  bool host_silent;      /* several ranks are on its host, which is not ours, and none answers */
  bool others_silent;    /* no rank at all answers */
  bool remote;           /* the rank is on another host than ours */
  bool only_remote_host; /* of all ranks, those that are not on our host are on that one */
  bool cut_off;          /* no rank of several other hosts answers */
} lcomm_witnesses;

/* An operation has not moved for `waited_s`: ask, and at the time-out fail. */
lcomm_status lcomm_diagnose(lcomm_comm *comm, const lcomm_operation *operation, double waited_s);

/* The rank of the process for which the end of an edge waits in another communicator;
 * -1: not known, or none of this one. */
int lcomm_diagnose_other_wait(const lcomm_comm *comm, const lcomm_wait_edge *edge);

/* diagnose_text.c: make it the communicator's error. */
lcomm_status lcomm_diagnose_fail(lcomm_comm *comm, const lcomm_wait_edge *edge,
                                 const lcomm_witnesses *witnesses);

#endif

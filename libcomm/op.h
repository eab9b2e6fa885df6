/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_OP_H
#define LCOMM_OP_H

/* Operations: collectives on their way. They start in the order of the calls,
 * which must be the same on all ranks, and all move forward together.
 *
 * Every operation also passes a *ticket* to the next rank and takes one from
 * the rank before: what is being called, on how much, with which plan. So a
 * rank that calls something else is named at once instead of being waited
 * for, even when the two calls would exchange no messages.
 */

#include "libcomm/exec.h"

enum { LCOMM_TICKET_SIZE = 48 };

/* What to do with the vector once the operation is over. */
typedef void (*lcomm_operation_end)(lcomm_operation *operation);

struct lcomm_operation {
  lcomm_run *run;
  uint32_t sequence;
  lcomm_op op;
  bool over;
  lcomm_status status; /* once over */
  uint64_t not_finite; /* once over: in the result, if a codec was at work */
  double moved_s;      /* when it last moved */

  lcomm_operation_end end; /* may be NULL */
  void *receive;           /* for end: the caller's buffer, or the bucket */
  lcomm_bucket *bucket;

  uint8_t ticket_out[LCOMM_TICKET_SIZE], ticket_in[LCOMM_TICKET_SIZE];
  lcomm_transfer ticket_sending, ticket_receiving;
  bool ticket_sent, ticket_received;

  lcomm_operation *next, *next_idle, *next_made;
  lcomm_operation *previous;
};

/* Take an operation for `run` and start it over `vector`. Allocates only
 * when more operations are in flight than ever before. On failure the run is
 * still the caller's. */
lcomm_status lcomm_operation_start(lcomm_comm *comm, lcomm_run *run, float *vector, lcomm_op op,
                                   lcomm_operation **operation);

/* Give an operation that is over back for reuse. */
void lcomm_operation_release(lcomm_comm *comm, lcomm_operation *operation);

/* Move all operations once; *moved tells whether anything happened. */
lcomm_status lcomm_operations_move(lcomm_comm *comm, bool *moved);

/* Wait until *flag is set by a moving operation. */
lcomm_status lcomm_operations_wait(lcomm_comm *comm, const bool *flag);

/* Announce an operation to the next rank and expect the announcement of the
 * one before; look whether they have passed, and compare; forget them. */
lcomm_status lcomm_ticket_post(lcomm_comm *comm, lcomm_operation *operation);
lcomm_status lcomm_ticket_move(lcomm_comm *comm, lcomm_operation *operation, bool *moved);
void lcomm_ticket_cancel(lcomm_comm *comm, lcomm_operation *operation);

/* The run of a plain call: one that is kept from an earlier call of its shape,
 * or a new one. On failure the sentence is written. ARGUMENT, MEMORY. */
lcomm_status lcomm_run_find(lcomm_comm *comm, const lcomm_plan_request *request, lcomm_run **run);

/* Keep it for the next call of its shape; the one not used for longest goes. */
void lcomm_run_keep(lcomm_comm *comm, lcomm_run *run);

#endif

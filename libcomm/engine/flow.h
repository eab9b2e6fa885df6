/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_FLOW_H
#define LCOMM_ENGINE_FLOW_H

/* Flow control: how far a rank may be ahead of its peers.
 *
 * Most operations cannot end here before every peer has begun them. Those in which a rank sends to
 * a peer and receives nothing from it can: the root of a broadcast would fill the memory of a slow
 * receiver. For them a sender needs credit. Both sides count such operations and their bytes, per
 * pair and sequence space; after every LCOMM_FLOW_OPERATIONS / 2 operations or LCOMM_FLOW_BYTES / 2
 * bytes the receiver sends a credit with what it has taken, and a sender that is a whole window
 * ahead of the last credit waits. So a receiver holds at most LCOMM_FLOW_BYTES and one operation of
 * each peer that it has not asked for.
 *
 * Operations that were begun and not waited for are bounded, too: within a sequence space only the
 * oldest ones move, up to LCOMM_FLOW_STEPS steps.
 *
 * Neither can block for ever. The oldest unfinished operation of a sequence space is the oldest on
 * every rank, all credits of those before it have been sent, and they are worth more than half a
 * window.
 */

#include "libcomm/engine/operation.h"

enum {
  LCOMM_FLOW_OPERATIONS = 64,
  LCOMM_FLOW_BYTES = 4 << 20,
  LCOMM_FLOW_STEPS = 4096, /* of all operations of a sequence space that move at once */
};

/* Part of lcomm_run_create and lcomm_run_destroy: the peers that this plan only
 * sends to, or only receives from. MEMORY. */
lcomm_status lcomm_flow_plan(lcomm_run *run);

/* Count an operation that begins. In the order of its sequence space. */
void lcomm_flow_begin(lcomm_run *run);

/* One round of moves over all operations, the oldest first: may this one move?
 * Sets run->flow.admitted once it may, or run->flow.held_by to the peer whose credit is
 * missing. WIRE for a credit that cannot be. */
typedef struct lcomm_flow_round {
  uint32_t steps[LCOMM_SEQUENCE_SPACE_COUNT];
} lcomm_flow_round;

lcomm_status lcomm_flow_admit(lcomm_flow_round *round, lcomm_run *run);

/* Send the credits that are due with an operation that has succeeded. */
lcomm_status lcomm_flow_end(lcomm_run *run);

/* Send credits that could not leave earlier. */
lcomm_status lcomm_flow_retry(lcomm_comm *comm);

/* After the last operation of all ranks: wait for the credits on their way, so that
 * no message is left over. A peer that does not answer within the patience of the
 * communicator is left. */
void lcomm_flow_drain(lcomm_comm *comm);

/* Forget messages in flight, before the links are closed, and free the rest after it. */
void lcomm_flow_cancel(lcomm_comm *comm);
void lcomm_flow_free(lcomm_comm *comm);

#endif

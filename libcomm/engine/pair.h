/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_PAIR_H
#define LCOMM_ENGINE_PAIR_H

/* Messages between two ranks, in which no other rank takes part; so they are no operations, and
 * have no number among them.
 *
 * Per peer and direction there is a queue: the n-th message that a rank sends to another is the
 * n-th that this one receives from it. Queues are independent of each other. Only the first message
 * of a queue is on its way.
 *
 * Data crosses through pinned memory, piece by piece, by two streams of the communicator: one for
 * what is sent, which waits for no peer, one for what is received, which waits for numbers that the
 * progress of messages writes. A stream of the program goes on behind a message that it sends when
 * the data is in pinned memory, whether the peer receives it or not. A header says what comes; long
 * data follows when the receiver has asked for it, so a sender fills nobody's memory.
 *
 * A rank may send to itself. */

#include "libcomm/engine/engine.h"

typedef struct lcomm_pair_call {
  bool is_send;
  lcomm_buffer data; /* on a device, or empty */
  int peer;
  void *stream;
} lcomm_pair_call;

/* Begin a message. The caller has entered the communicator, and has the device's turn.
 * UNSUPPORTED, MEMORY, SYSTEM; the communicator has failed but for UNSUPPORTED. */
lcomm_status lcomm_pair_begin(lcomm_comm *comm, const lcomm_pair_call *call);

/* Is a message not over? */
bool lcomm_pairs_are_busy(const lcomm_comm *comm);

/* Is anything in flight? */
static inline bool lcomm_comm_is_busy(const lcomm_comm *comm) {
  return comm->operations.first || lcomm_pairs_are_busy(comm);
}

/* Make progress on all messages; *moved is set if any moved. */
lcomm_status lcomm_pairs_move(lcomm_comm *comm, bool *moved);

/* Has a peer been waited for too long? TIMEOUT then. */
lcomm_status lcomm_pairs_check(lcomm_comm *comm);

/* Wait for all. */
lcomm_status lcomm_pairs_finish(lcomm_comm *comm);

/* After a failure, and before the links are closed: nothing is waited for any more, streams go on.
 */
void lcomm_pairs_cancel(lcomm_comm *comm);

/* Part of lcomm_comm_free, after the links: they may read until they are closed. */
void lcomm_pairs_free(lcomm_comm *comm);

#endif

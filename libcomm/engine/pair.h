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
 * A header says what comes; long data follows in pieces when the receiver has asked for it, so a
 * sender fills nobody's memory. Pieces lie in the program's memory, or in frames (pair_frame.h)
 * where the policy has a codec for them.
 *
 * Data on a device crosses through pinned memory, piece by piece, by two streams of the
 * communicator: one for what is sent, which waits for no peer, one for what is received, which
 * waits for numbers that the progress of messages writes. A stream of the program goes on behind a
 * message that it sends when the data is in pinned memory, whether the peer receives it or not.
 *
 * A rank may send to itself. */

#include "libcomm/engine/engine.h"

typedef struct lcomm_pair_message lcomm_pair_message;

/* Messages of one meaning to one rank, which have error feedback: what was not sent of one is
 * added to the next one. Only the sender knows of it. */
struct lcomm_channel {
  lcomm_comm *comm;
  int peer;
  uint64_t count;     /* of float32 elements in each message */
  float *residual;    /* [count] */
  unsigned in_flight; /* messages that are not over */
  lcomm_channel *next, *previous;
};

typedef struct lcomm_pair_call {
  bool is_send;
  bool is_streamed;  /* in order with `stream`, the data on a device or empty; else on the host */
  bool is_kept;      /* its message is given back by lcomm_pair_collect() */
  bool is_grouped;   /* lcomm_pair_group_end() waits for it */
  lcomm_buffer data; /* only read by a send */
  int peer;
  void *stream;
  uint64_t capture;       /* into a graph, that the stream is in (pair_recording.h); 0: none */
  lcomm_channel *channel; /* of a send; NULL: without error feedback */
} lcomm_pair_call;

/* Make comm->pairs where there are none. MEMORY, which is not the communicator's. */
lcomm_status lcomm_pairs_make(lcomm_comm *comm);

/* Begin a message. The caller has entered the communicator, and of one on a stream has the device's
 * turn. *message is written where the call is kept. MEMORY, SYSTEM; the communicator has failed. */
lcomm_status lcomm_pair_begin(lcomm_comm *comm, const lcomm_pair_call *call,
                              lcomm_pair_message **message);

/* Is a message not over? */
bool lcomm_pairs_are_busy(const lcomm_comm *comm);

/* Is anything in flight? */
static inline bool lcomm_comm_is_busy(const lcomm_comm *comm) {
  return comm->operations.first || lcomm_pairs_are_busy(comm);
}

/* Make progress on all messages; *moved is set if any moved. */
lcomm_status lcomm_pairs_move(lcomm_comm *comm, bool *moved);

/* pair_wait.c */

/* Has a peer been waited for too long? TIMEOUT then. */
lcomm_status lcomm_pairs_check(lcomm_comm *comm);

/* The time-out counts for a message from here on: the program waits for it. */
void lcomm_pair_await(lcomm_comm *comm, lcomm_pair_message *message);

/* The row of the statistics of a message that is waited for; NULL: none is. A row stays where it
 * is.
 */
lcomm_summary_row *lcomm_pairs_awaited_row(lcomm_comm *comm);

/* A flag that is set once the message is over, for waits. */
const bool *lcomm_pair_over(const lcomm_pair_message *message);

/* Whose it is. */
lcomm_comm *lcomm_pair_owner(const lcomm_pair_message *message);

/* Give a message that is over back; returns how it ended. */
lcomm_status lcomm_pair_collect(lcomm_comm *comm, lcomm_pair_message *message);

/* Wait for all that are in order with streams. */
lcomm_status lcomm_pairs_finish(lcomm_comm *comm);

/* Groups may be nested. Between begin and end, lcomm_pair_group_is_open(). A receive on a stream is
 * put off until the end. The outermost end wants what was put off to be begun, by `begin` in
 * its order, `count` calls, and then waits for all grouped messages. MEMORY; what `begin` returns;
 * an error of the communicator. */
lcomm_status lcomm_pair_group_begin(lcomm_comm *comm);
bool lcomm_pair_group_is_open(const lcomm_comm *comm);
lcomm_status lcomm_pair_group_put_off(lcomm_comm *comm, const lcomm_pair_call *call);
lcomm_status lcomm_pair_group_end(lcomm_comm *comm,
                                  lcomm_status (*begin)(lcomm_comm *comm,
                                                        const lcomm_pair_call *calls,
                                                        size_t count));

/* pair_channel.c. Make one, in which nothing waits; NULL without memory for it. Free one of which
 * no message is in flight. */
lcomm_channel *lcomm_pair_channel_make(lcomm_comm *comm, int peer, uint64_t count);
void lcomm_pair_channel_free(lcomm_channel *channel);

/* After a failure, and before the links are closed: nothing is waited for any more, streams go on.
 */
void lcomm_pairs_cancel(lcomm_comm *comm);

/* Part of lcomm_comm_free, after the links: they may read until they are closed. */
void lcomm_pairs_free(lcomm_comm *comm);

#endif

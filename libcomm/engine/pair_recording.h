/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_PAIR_RECORDING_H
#define LCOMM_ENGINE_PAIR_RECORDING_H

/* Messages between two ranks that a program captures into a graph. What their device does is played
 * once, into lanes that are captured with the program's stream (lanes.h); each launch of the graph
 * sends, or receives, the message again: a replay, which whoever moves messages begins when the
 * device has come to it.
 *
 * The n-th captured send to a rank is what the n-th captured receive there gets, and the r-th
 * replay of the one is for the r-th replay of the other. No rank is asked, so captured messages
 * and others do not meet. Each has a channel, whose messages have tags of their own, a queue, and
 * pinned memory; so replays of several graphs come in any order.
 *
 * What a graph holds is constant, so the numbers of a message (lcomm_pair_numbers) begin at 0 in
 * each replay. A device does
 *
 *   await free, write begun     a replay begins
 *   the pieces, by `there`      of a send they are copied to, of a receive from pinned memory
 *   await seen, write left      it is through
 *
 * and the progress of messages, when `begun` is there: free = 0, the message begins, seen = 1; when
 * the message is over and `left` is there: all numbers = 0, free = 1. So one replay is in flight,
 * and the next one waits on the device. A send's stream waits for no peer, but for that of the
 * replay before to have left.
 *
 * After a failure, and before the communicator's end, all that is awaited is there for good:
 * replays pass. Memory that a graph refers to outlives the communicator (left_memory.h). */

#include "libcomm/engine/pair_internal.h"
#include "libcomm/engine/recording.h"

enum { LCOMM_PAIR_CAPTURED_MAX = 8191 }; /* to a peer, and from it, ever: tags have so much room */

typedef enum lcomm_pair_replay_state {
  LCOMM_PAIR_REPLAY_IDLE,
  LCOMM_PAIR_REPLAY_MOVES, /* its message is in flight */
  LCOMM_PAIR_REPLAY_DRAINS /* that is over; the device may not be through */
} lcomm_pair_replay_state;

typedef struct lcomm_pair_recording {
  struct lcomm_pair_recording *next;
  lcomm_pair_message message; /* of the replay in flight */
  lcomm_pair_message fresh;   /* of each at its begin; its block is the recording's */
  lcomm_pair_queue queue;     /* of `message` alone */
  lcomm_graph_life *graph;
  lcomm_pair_call call;
  int ordinal;      /* of the device */
  void *lane;       /* the stream it is played into, while it is captured */
  bool is_captured; /* all of it is played */
  lcomm_pair_replay_state state;
} lcomm_pair_recording;

/* Can one more message of this direction of a pair be captured, ever? */
bool lcomm_pair_can_record(const lcomm_comm *comm, const lcomm_pair_call *call);

/* Put a message into the graph that its stream is captured into: its begin; then the rest of all
 * that have begun, in the order of their begins. So those that begin together do not wait for each
 * other. Both in the device's turn. Errors are the communicator's: MEMORY, SYSTEM. */
lcomm_status lcomm_pair_record(lcomm_comm *comm, const lcomm_pair_call *call);
lcomm_status lcomm_pair_records_end(lcomm_comm *comm);

/* Is there a graph that may still send in this channel? */
bool lcomm_pair_channel_is_recorded(const lcomm_channel *channel);

/* Those whose graphs are gone are freed. In the device's turn. */
void lcomm_pair_recordings_retire(lcomm_comm *comm);

/* Part of lcomm_recordings_close, and of lcomm_pairs_free. */
void lcomm_pair_recordings_close(lcomm_comm *comm);
void lcomm_pair_recordings_free(lcomm_comm *comm);

/* pair_replay.c. Parts of lcomm_replays_move, lcomm_pairs_check and lcomm_pairs_cancel. */
lcomm_status lcomm_pair_replays_move(lcomm_comm *comm, bool *moved);
lcomm_status lcomm_pair_replays_check(lcomm_comm *comm, double now_s);
void lcomm_pair_replays_cancel(lcomm_comm *comm);

#endif

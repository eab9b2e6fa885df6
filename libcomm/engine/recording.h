/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_RECORDING_H
#define LCOMM_ENGINE_RECORDING_H

/* Recordings: calls that a program has captured into a graph of its device. The tape (tape.h) is
 * played once, into lanes that are captured with the program's stream; each launch of the graph is
 * an operation of the same run, a replay, that whoever moves messages begins when the device says
 * so.
 *
 * What a graph holds is constant, so all numbers of such a tape are 0 or 1. Lanes await 1 and write
 * 1; the proxy puts them back to 0 between two replays. Four besides those of other tapes:
 *
 *   free   the proxy is through with the replay before: its messages have left
 *   start  written after `free` by the first lane: a replay begins
 *   begun  the proxy has seen that; awaited before the result is staged out
 *   end    as ever, written when nothing of the replay is left in any lane
 *
 * So one replay is in flight at a time, and others wait on the device. After a failure, and after
 * the communicator, all that lanes await is 1 for good: replays pass and their results mean
 * nothing.
 *
 * Ranks need not begin their replays in one order: each recording has a channel, by which its
 * messages are told apart, and a count of its replays. It is no part of the sequence spaces. */

#include "libcomm/device/device.h"
#include "libcomm/engine/exec.h"

typedef enum lcomm_recording_state {
  LCOMM_RECORDING_IDLE,
  LCOMM_RECORDING_REPLAYS,     /* an operation is in flight */
  LCOMM_RECORDING_ACKNOWLEDGES /* it is over, and acknowledgements (replay_acks.c) are on their way
                                */
} lcomm_recording_state;

/* Whether a graph that refers to it is there. Of nobody: it outlives the communicator. */
typedef struct lcomm_graph_life {
  atomic_bool is_over;
} lcomm_graph_life;

/* Until the graph that `stream` is captured into is gone, and what was launched of it is over: then
 * life->is_over. What CUDA has against it, or 0. */
int lcomm_graph_hold(const lcomm_device_table *table, void *stream, lcomm_graph_life *life);

typedef struct lcomm_recording {
  struct lcomm_recording *next;
  lcomm_run *run;
  lcomm_graph_life *graph;
  lcomm_recording_state state;
  uint32_t replay;   /* the number of the next one */
  bool has_messages; /* else the device needs nobody */
  bool is_closed;    /* lanes wait for nothing any more */
  uint64_t *seed;    /* pinned: what is added to seeds in the next replay; NULL: there is none */
  uint64_t *device_seed;     /* of the device: in this one */
  struct lcomm_gates *gates; /* gates.h; NULL: all payloads cross through the host */
  struct lcomm_acknowledgement *acks;
  uint32_t ack_count;
} lcomm_recording;

enum { LCOMM_RECORDINGS_MAX = 8192 }; /* of a communicator, ever: channels are not used again */

/* Tags of the messages of a channel, beside the step's number and the piece. */
static inline uint32_t lcomm_recording_tag(uint32_t channel) {
  enum { LCOMM_TAG_RECORDING = 1 << 29 };
  return (uint32_t)LCOMM_TAG_CONTROL | LCOMM_TAG_RECORDING | channel << 16;
}

/* ------------------------------------------------------------------- capturing */

/* Make a run for a plan (owned from here on, also on failure) that plays tapes. Then ranks may
 * agree on gates (gates.h). Then it is completed, for the capture of this number that `stream` is
 * in, and nothing else takes the device's turn until it is open. Both in the device's turn. On
 * failure the communicator has failed, and the recording is gone. */
lcomm_status lcomm_recording_create(lcomm_comm *comm, lcomm_plan *plan,
                                    lcomm_recording **recording);
lcomm_status lcomm_recording_complete(lcomm_recording *recording, void *stream, uint64_t capture);

/* Parts of both: the recording of a run, and what its seeds need. MEMORY, SYSTEM. */
lcomm_status lcomm_recording_add(lcomm_run *run);
lcomm_status lcomm_recording_make_seed(lcomm_recording *recording);

/* Between the two: give it up, as the communicator has failed. */
void lcomm_recording_give_up(lcomm_recording *recording);

/* run->data says what it works on: rewind for playing; then, when all is played, successfully or
 * not, from here on replays may begin. */
void lcomm_recording_rewind(lcomm_recording *recording);
void lcomm_recording_open(lcomm_recording *recording);

/* ------------------------------------------------------------------- replaying */

/* May a device come to a replay, of a call or of a message between two ranks? */
static inline bool lcomm_comm_has_recordings(const lcomm_comm *comm) {
  return comm->recordings.first || comm->recordings.pairs;
}

/* Begin the replays that devices have come to, and end those that are over. */
lcomm_status lcomm_replays_move(lcomm_comm *comm, bool *moved);

/* The operation of a replay is over. */
void lcomm_replay_over(lcomm_run *run, lcomm_status status);

/* Nobody is told when a device comes to a replay, so who sleeps looks now and then: no longer than
 * this, and not longer than limit_s. */
double lcomm_replays_limit_s(const lcomm_comm *comm, double limit_s);

/* ------------------------------------------------------------------------- end */

/* From here on replays pass, those of messages between two ranks, too: after a failure, or before
 * the end. */
void lcomm_recordings_close(lcomm_comm *comm);

/* Recordings whose graphs are gone are retired. */
void lcomm_recordings_retire(lcomm_comm *comm);

/* Part of lcomm_comm_free: memory that graphs still refer to is left (left_memory.h). */
void lcomm_recordings_free(lcomm_comm *comm);

/* Part of lcomm_run_destroy. */
void lcomm_recording_free(lcomm_recording *recording);

/* ------------------------------------------------------------ acknowledgements */

/* Ranks that only send to a peer could be any number of replays ahead of it. So the peer
 * acknowledges each replay, and the next one waits for that. */
lcomm_status lcomm_acknowledgements_make(lcomm_recording *recording);
lcomm_status lcomm_acknowledgements_begin(lcomm_recording *recording);
lcomm_status lcomm_acknowledgements_test(lcomm_recording *recording, bool *over);
void lcomm_acknowledgements_cancel(lcomm_recording *recording);

#endif

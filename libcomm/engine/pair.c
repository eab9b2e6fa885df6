/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages between two ranks: their queues, begin and end. */

#include "libcomm/engine/pair.h"

#include <stdlib.h>
#include <string.h>

#include "libcomm/engine/operation.h"
#include "libcomm/engine/pair_frame.h"
#include "libcomm/engine/pair_move.h"
#include "libcomm/engine/pair_recording.h"
#include "libcomm/plan/pipe.h"

enum { PIECES_MOST = 64 };

/* ------------------------------------------------------------------ queues */

/* For a look from outside, as operations.in_flight is. */
static void count_outside(lcomm_comm *comm, int change) {
  unsigned now = atomic_load_explicit(&comm->operations.in_flight, memory_order_relaxed);
  atomic_store_explicit(&comm->operations.in_flight, now + (unsigned)change, memory_order_relaxed);
}

static void count_in_flight(lcomm_comm *comm, const lcomm_pair_message *it, int change) {
  struct lcomm_pairs *pairs = comm->pairs;
  count_outside(comm, change);
  pairs->in_flight += (unsigned)change;
  if (it->is_streamed) {
    pairs->streamed += (unsigned)change;
    comm->runs.played += (unsigned)change; /* streams wait for messages, as with tapes */
  }
  if (it->end.is_grouped) {
    pairs->group.in_flight += (unsigned)change;
  }
  pairs->is_idle = pairs->streamed == 0;
  pairs->group.is_over = pairs->group.in_flight == 0;
}

/* In use until its data is in its block. */
static void count_device(lcomm_comm *comm, lcomm_pair_message *it, bool counts) {
  comm->runs.device_works += (unsigned)counts - (unsigned)it->end.counts_device;
  it->end.counts_device = counts;
}

void lcomm_pair_append(lcomm_comm *comm, lcomm_pair_queue *queue, lcomm_pair_message *it) {
  it->what.number = queue->next++;
  it->next = NULL;
  if (queue->last) {
    queue->last->next = it;
  } else {
    queue->first = it;
  }
  queue->last = it;
  if (it->channel) {
    it->channel->in_flight++;
  }
  lcomm_pair_account_begin(comm, it);
  count_in_flight(comm, it, 1);
  count_device(comm, it, it->is_send && it->block);
}

/* The first of a queue is over. Whoever has a request of it gives it back. */
static void finish(lcomm_comm *comm, lcomm_pair_queue *queue, lcomm_status status) {
  lcomm_pair_message *it = queue->first;
  queue->first = it->next;
  queue->last = queue->first ? queue->last : NULL;
  count_device(comm, it, false);
  lcomm_pair_unstage(comm, it);
  lcomm_pair_account_end(comm, it, status);
  if (it->channel) {
    it->channel->in_flight--;
  }
  count_in_flight(comm, it, -1);
  it->end.over = true;
  it->end.status = status;
  if (!it->end.is_kept) {
    it->next = comm->pairs->spare;
    comm->pairs->spare = it;
  }
}

/* ------------------------------------------------------------------- begin */

lcomm_status lcomm_pairs_make(lcomm_comm *comm) {
  size_t size = (size_t)comm->size;
  struct lcomm_pairs *pairs = comm->pairs ? NULL : calloc(1, sizeof *pairs);
  if (comm->pairs) {
    return LCOMM_OK;
  }
  if (pairs) {
    pairs->out = calloc(size, sizeof *pairs->out);
    pairs->in = calloc(size, sizeof *pairs->in);
  }
  if (!pairs || !pairs->out || !pairs->in) {
    free(pairs ? pairs->out : NULL);
    free(pairs ? pairs->in : NULL);
    free(pairs);
    return LCOMM_ERR_MEMORY;
  }
  pairs->ordinal = LCOMM_DEVICE_NONE;
  pairs->is_idle = pairs->group.is_over = true;
  comm->pairs = pairs;
  return LCOMM_OK;
}

static lcomm_pair_message *take(struct lcomm_pairs *pairs) {
  lcomm_pair_message *it = pairs->spare;
  if (it) {
    pairs->spare = it->next;
    return it;
  }
  it = calloc(1, sizeof *it);
  if (it) {
    it->next_made = pairs->made;
    pairs->made = it;
  }
  return it;
}

/* By both sides alike. */
static void choose_format(const lcomm_comm *comm, lcomm_pair_message *it) {
  const lcomm_policy *policy = &comm->settings.policy;
  it->format =
      lcomm_pipe_format(policy, &comm->topo, comm->rank, it->peer, it->what.dtype, it->what.count);
  lcomm_pair_header_set_format(&it->what, &it->format, policy->checksum && it->peer != comm->rank);
}

/* Pieces of 1 MiB, or of long data that is not framed no more than 64: of a device each takes two
 * calls of CUDA. */
static void cut(lcomm_pair_message *it) {
  bool is_framed = lcomm_pair_header_is_framed(&it->what);
  uint64_t least = is_framed ? 1 : (it->size + PIECES_MOST - 1) / PIECES_MOST;
  uint64_t pieces_of = (least + LCOMM_PAIR_FRAME_PIECE - 1) / LCOMM_PAIR_FRAME_PIECE;
  it->piece_size = (size_t)(pieces_of * LCOMM_PAIR_FRAME_PIECE);
  it->pieces = it->size == 0 ? 0 : (uint32_t)((it->size + it->piece_size - 1) / it->piece_size);
}

void lcomm_pair_describe(lcomm_comm *comm, lcomm_pair_message *it, const lcomm_pair_call *call) {
  size_t head = offsetof(lcomm_pair_message, bytes); /* data of a message before may stay */
  lcomm_pair_message *made = it->next_made;
  memset(it, 0, head);
  it->next_made = made;
  it->is_send = call->is_send;
  it->is_streamed = call->is_streamed;
  it->peer = call->peer;
  it->what = (lcomm_pair_header){.count = call->data.count, .dtype = call->data.dtype};
  it->size = call->data.count * lcomm_dtype_size(call->data.dtype);
  it->data = call->data.data;
  it->channel = call->channel;
  it->owner = comm;
  it->end = (lcomm_pair_end){
      .is_kept = call->is_kept, .is_grouped = call->is_grouped, .is_awaited = call->is_streamed};
  choose_format(comm, it);
  cut(it);
}

lcomm_status lcomm_pair_failed(lcomm_comm *comm, const lcomm_pair_call *call, lcomm_status status) {
  char who[96];
  const char *why = status == LCOMM_ERR_MEMORY ? "out of memory" : lcomm_error_thread_text();
  lcomm_status before = (lcomm_status)atomic_load(&comm->errors.status);
  if (before != LCOMM_OK) {
    return before;
  }
  status = lcomm_fail(comm, status, "a %s %s: %s", call->is_send ? "send to" : "receive from",
                      lcomm_comm_who(comm, call->peer, who, sizeof(who)), why);
  lcomm_operations_cancel(comm, status);
  return status;
}

/* Memory of its own. */
static lcomm_status prepare(lcomm_comm *comm, lcomm_pair_message *it, const lcomm_pair_call *call) {
  LCOMM_TRY(lcomm_pair_frame_prepare(comm, lcomm_pair_queue_of(comm, it->is_send, it->peer), it));
  return it->is_streamed && it->size > 0 ? lcomm_pair_stage(comm, it, call->data.location.device)
                                         : LCOMM_OK;
}

lcomm_status lcomm_pair_begin(lcomm_comm *comm, const lcomm_pair_call *call,
                              lcomm_pair_message **message) {
  lcomm_status status = lcomm_pairs_make(comm);
  lcomm_pair_message *it = status == LCOMM_OK ? take(comm->pairs) : NULL;
  if (!it) {
    return lcomm_pair_failed(comm, call, LCOMM_ERR_MEMORY);
  }
  lcomm_pair_describe(comm, it, call);
  status = prepare(comm, it, call);
  if (status != LCOMM_OK || atomic_load(&comm->errors.status) != LCOMM_OK) {
    lcomm_pair_unstage(comm, it);
    it->next = comm->pairs->spare;
    comm->pairs->spare = it;
    return lcomm_pair_failed(comm, call, status);
  }
  bool plays = it->block != NULL;
  lcomm_pair_append(comm, lcomm_pair_queue_of(comm, it->is_send, it->peer), it);
  if (call->is_kept) {
    *message = it;
  }
  status = plays ? lcomm_pair_play(comm, it, call) : LCOMM_OK;
  return status == LCOMM_OK ? LCOMM_OK : lcomm_pair_failed(comm, call, status);
}

/* ---------------------------------------------------------------- progress */

bool lcomm_pairs_are_busy(const lcomm_comm *comm) {
  return comm->pairs && comm->pairs->in_flight > 0;
}

lcomm_status lcomm_pair_queue_move(lcomm_comm *comm, lcomm_pair_queue *queue, bool *moved) {
  bool over = true;
  while (queue->first && over) {
    lcomm_pair_message *it = queue->first;
    bool here = false;
    over = false;
    LCOMM_TRY(lcomm_pair_move(comm, it, &here, &over));
    count_device(comm, it, it->end.counts_device && !lcomm_pair_has(it, it->pieces));
    *moved |= here || over;
    it->end.waits_s = here ? 0 : it->end.waits_s;
    if (over) {
      finish(comm, queue, LCOMM_OK);
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_pair_queue_move_own(lcomm_comm *comm, lcomm_pair_queue *out,
                                       lcomm_pair_queue *in, bool *moved) {
  bool over = true;
  while (out->first && in->first && over) {
    over = false;
    LCOMM_TRY(lcomm_pair_move_own(comm, out->first, in->first, moved, &over));
    if (over) {
      *moved = true;
      finish(comm, out, LCOMM_OK);
      finish(comm, in, LCOMM_OK);
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_pairs_move(lcomm_comm *comm, bool *moved) {
  for (int peer = 0; peer < comm->size && lcomm_pairs_are_busy(comm); peer++) {
    lcomm_pair_queue *out = lcomm_pair_queue_of(comm, true, peer);
    lcomm_pair_queue *in = lcomm_pair_queue_of(comm, false, peer);
    if (peer == comm->rank) {
      LCOMM_TRY(lcomm_pair_queue_move_own(comm, out, in, moved));
    } else {
      LCOMM_TRY(lcomm_pair_queue_move(comm, out, moved));
      LCOMM_TRY(lcomm_pair_queue_move(comm, in, moved));
    }
  }
  return LCOMM_OK;
}

/* ------------------------------------------------------------------ the end */

void lcomm_pair_queue_cancel(lcomm_comm *comm, lcomm_pair_queue *queue) {
  lcomm_status status = (lcomm_status)atomic_load(&comm->errors.status);
  while (queue->first) {
    lcomm_pair_forget(comm, queue->first);
    if (!queue->first->is_send) {
      lcomm_pair_gives(queue->first, queue->first->pieces);
    }
    finish(comm, queue, status == LCOMM_OK ? LCOMM_ERR_ABORTED : status);
  }
}

void lcomm_pairs_cancel(lcomm_comm *comm) {
  for (int peer = 0; peer < comm->size && lcomm_pairs_are_busy(comm); peer++) {
    lcomm_pair_queue_cancel(comm, lcomm_pair_queue_of(comm, true, peer));
    lcomm_pair_queue_cancel(comm, lcomm_pair_queue_of(comm, false, peer));
  }
  lcomm_pair_replays_cancel(comm);
}

void lcomm_pairs_free(lcomm_comm *comm) {
  struct lcomm_pairs *pairs = comm->pairs;
  if (!pairs) {
    return;
  }
  lcomm_pair_recordings_free(comm);
  lcomm_pairs_free_staging(comm);
  lcomm_pair_frames_free(comm);
  lcomm_pair_channels_free(comm);
  while (pairs->made) {
    lcomm_pair_message *next = pairs->made->next_made;
    free(pairs->made);
    pairs->made = next;
  }
  free(pairs->group.receives);
  free(pairs->out);
  free(pairs->in);
  free(pairs);
  comm->pairs = NULL;
}

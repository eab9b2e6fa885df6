/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages between two ranks: their queues, begin and end. */

#include "libcomm/engine/pair.h"

#include <stdlib.h>
#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/operation.h"
#include "libcomm/engine/pair_move.h"

enum { PIECE_SIZE = 1 << 20, PIECES_MOST = 64 };

/* ------------------------------------------------------------------ queues */

static void count_in_flight(lcomm_comm *comm, int change) {
  struct lcomm_pairs *pairs = comm->pairs;
  pairs->in_flight += (unsigned)change;
  pairs->is_idle = pairs->in_flight == 0;
  comm->runs.played += (unsigned)change; /* streams wait for messages, as with tapes */
}

/* In use until its data is in its block. */
static void count_device(lcomm_comm *comm, lcomm_pair_message *it, bool counts) {
  comm->runs.device_works += (unsigned)counts - (unsigned)it->counts_device;
  it->counts_device = counts;
}

static lcomm_pair_queue *queue_of(const lcomm_comm *comm, bool is_send, int peer) {
  return is_send ? &comm->pairs->out[peer] : &comm->pairs->in[peer];
}

static void append(lcomm_comm *comm, lcomm_pair_message *it) {
  lcomm_pair_queue *queue = queue_of(comm, it->is_send, it->peer);
  it->what.number = queue->next++;
  it->next = NULL;
  if (queue->last) {
    queue->last->next = it;
  } else {
    queue->first = it;
  }
  queue->last = it;
  count_in_flight(comm, 1);
}

/* The first of a queue is over. */
static void finish(lcomm_comm *comm, lcomm_pair_queue *queue) {
  lcomm_pair_message *it = queue->first;
  queue->first = it->next;
  queue->last = queue->first ? queue->last : NULL;
  count_device(comm, it, false);
  lcomm_pair_unstage(comm, it);
  it->next = comm->pairs->spare;
  comm->pairs->spare = it;
  count_in_flight(comm, -1);
}

/* ------------------------------------------------------------------- begin */

static lcomm_status make(lcomm_comm *comm) {
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
  pairs->is_idle = true;
  comm->pairs = pairs;
  return LCOMM_OK;
}

static lcomm_pair_message *take(struct lcomm_pairs *pairs) {
  lcomm_pair_message *it = pairs->spare;
  if (it) {
    pairs->spare = it->next;
  }
  return it ? it : malloc(sizeof *it);
}

/* Pieces of 1 MiB, or of long messages no more than 64: each takes two calls of CUDA. */
static void describe(lcomm_pair_message *it, const lcomm_pair_call *call) {
  size_t header = offsetof(lcomm_pair_message, bytes); /* data of a message before may stay */
  memset(it, 0, header);
  it->is_send = call->is_send;
  it->peer = call->peer;
  it->what = (lcomm_pair_header){.count = call->data.count, .dtype = call->data.dtype};
  it->size = call->data.count * lcomm_dtype_size(call->data.dtype);
  uint64_t least = (it->size + PIECES_MOST - 1) / PIECES_MOST;
  it->piece_size = (size_t)((least + PIECE_SIZE - 1) / PIECE_SIZE * PIECE_SIZE);
  it->pieces = it->size == 0 ? 0 : (uint32_t)((it->size + it->piece_size - 1) / it->piece_size);
}

static lcomm_status failed(lcomm_comm *comm, const lcomm_pair_call *call, lcomm_status status) {
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

lcomm_status lcomm_pair_begin(lcomm_comm *comm, const lcomm_pair_call *call) {
  lcomm_status status = make(comm);
  lcomm_pair_message *it = status == LCOMM_OK ? take(comm->pairs) : NULL;
  if (!it) {
    return failed(comm, call, LCOMM_ERR_MEMORY);
  }
  describe(it, call);
  if (it->size > 0) {
    status = lcomm_pair_stage(comm, it, call->data.location.device);
  }
  if (status != LCOMM_OK || atomic_load(&comm->errors.status) != LCOMM_OK) {
    lcomm_pair_unstage(comm, it);
    free(it);
    return failed(comm, call, status);
  }
  append(comm, it);
  count_device(comm, it, it->is_send && it->size > 0);
  status = it->size > 0 ? lcomm_pair_play(comm, it, call) : LCOMM_OK;
  return status == LCOMM_OK ? LCOMM_OK : failed(comm, call, status);
}

/* ---------------------------------------------------------------- progress */

bool lcomm_pairs_are_busy(const lcomm_comm *comm) {
  return comm->pairs && comm->pairs->in_flight > 0;
}

static lcomm_status move_first(lcomm_comm *comm, lcomm_pair_queue *queue, bool *moved) {
  bool over = true;
  while (queue->first && over) {
    lcomm_pair_message *it = queue->first;
    bool here = false;
    over = false;
    LCOMM_TRY(lcomm_pair_move(comm, it, &here, &over));
    count_device(comm, it, it->counts_device && !lcomm_pair_has(it, it->pieces));
    *moved |= here || over;
    it->waits_s = here ? 0 : it->waits_s;
    if (over) {
      finish(comm, queue);
    }
  }
  return LCOMM_OK;
}

static lcomm_status move_own(lcomm_comm *comm, bool *moved) {
  lcomm_pair_queue *out = queue_of(comm, true, comm->rank);
  lcomm_pair_queue *in = queue_of(comm, false, comm->rank);
  bool over = true;
  while (out->first && in->first && over) {
    over = false;
    LCOMM_TRY(lcomm_pair_move_own(comm, out->first, in->first, moved, &over));
    if (over) {
      *moved = true;
      finish(comm, out);
      finish(comm, in);
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_pairs_move(lcomm_comm *comm, bool *moved) {
  for (int peer = 0; peer < comm->size && lcomm_pairs_are_busy(comm); peer++) {
    if (peer == comm->rank) {
      LCOMM_TRY(move_own(comm, moved));
    } else {
      LCOMM_TRY(move_first(comm, queue_of(comm, true, peer), moved));
      LCOMM_TRY(move_first(comm, queue_of(comm, false, peer), moved));
    }
  }
  return LCOMM_OK;
}

/* Has this rank's own device come so far that the peer is waited for? */
static bool awaits_peer(const lcomm_pair_message *it) {
  if (it->size == 0 || !it->is_send) {
    return it->size == 0 || lcomm_pair_reached(&it->block->numbers->begun, it->base + 1);
  }
  return lcomm_pair_has(it, it->piece + (it->piece < it->pieces));
}

static lcomm_status check_first(lcomm_comm *comm, lcomm_pair_message *it, double now_s) {
  char who[96];
  if (!it || !awaits_peer(it)) {
    return LCOMM_OK;
  }
  it->waits_s = it->waits_s > 0 ? it->waits_s : now_s;
  if (now_s - it->waits_s < comm->settings.timeout_s) {
    return LCOMM_OK;
  }
  return lcomm_fail_peer(comm, LCOMM_ERR_TIMEOUT, it->peer,
                         "a %s of %llu %s %s %s has waited for %g s: that rank does not %s. Does "
                         "every send have a receive? LCOMM_TIMEOUT_S sets the time-out.",
                         it->is_send ? "send" : "receive", (unsigned long long)it->what.count,
                         lcomm_dtype_name(it->what.dtype), it->is_send ? "to" : "from",
                         lcomm_comm_who(comm, it->peer, who, sizeof(who)), now_s - it->waits_s,
                         it->is_send ? "receive" : "send");
}

/* What a rank sends to itself waits for the receive, not for the device that has not come there. */
lcomm_status lcomm_pairs_check(lcomm_comm *comm) {
  double now_s = lcomm_clock_s();
  for (int peer = 0; peer < comm->size && lcomm_pairs_are_busy(comm); peer++) {
    lcomm_pair_message *out = queue_of(comm, true, peer)->first;
    lcomm_pair_message *in = queue_of(comm, false, peer)->first;
    LCOMM_TRY(check_first(comm, peer == comm->rank && in ? NULL : out, now_s));
    LCOMM_TRY(check_first(comm, in, now_s));
  }
  return LCOMM_OK;
}

lcomm_status lcomm_pairs_finish(lcomm_comm *comm) {
  return lcomm_pairs_are_busy(comm) ? lcomm_operations_wait(comm, &comm->pairs->is_idle) : LCOMM_OK;
}

/* ------------------------------------------------------------------ the end */

static void cancel_queue(lcomm_comm *comm, lcomm_pair_queue *queue) {
  while (queue->first) {
    lcomm_pair_forget(comm, queue->first);
    if (!queue->first->is_send) {
      lcomm_pair_gives(queue->first, queue->first->pieces);
    }
    finish(comm, queue);
  }
}

void lcomm_pairs_cancel(lcomm_comm *comm) {
  for (int peer = 0; peer < comm->size && lcomm_pairs_are_busy(comm); peer++) {
    cancel_queue(comm, queue_of(comm, true, peer));
    cancel_queue(comm, queue_of(comm, false, peer));
  }
}

void lcomm_pairs_free(lcomm_comm *comm) {
  struct lcomm_pairs *pairs = comm->pairs;
  if (!pairs) {
    return;
  }
  lcomm_pairs_free_staging(comm);
  while (pairs->spare) {
    lcomm_pair_message *next = pairs->spare->next;
    free(pairs->spare);
    pairs->spare = next;
  }
  free(pairs->out);
  free(pairs->in);
  free(pairs);
  comm->pairs = NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages between two ranks: time-outs, requests and groups. */

#include <stdlib.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/operation.h"
#include "libcomm/engine/pair_recording.h"

/* ---------------------------------------------------------------- time-outs */

/* Does the program, or a stream, wait for a message of the queue? All that come before it are
 * waited for then. */
static bool is_awaited(const lcomm_pair_queue *queue) {
  const lcomm_pair_message *it = queue->first;
  while (it && !it->end.is_awaited) {
    it = it->next;
  }
  return it != NULL;
}

/* Has this rank's own device come so far that the peer is waited for? */
static bool awaits_peer(const lcomm_pair_message *it) {
  if (!it->block || !it->is_send) {
    return !it->block || lcomm_pair_reached(&it->block->numbers->begun, it->base + 1);
  }
  return lcomm_pair_has(it, it->piece + (it->piece < it->pieces));
}

lcomm_status lcomm_pair_queue_check(lcomm_comm *comm, const lcomm_pair_queue *queue, double now_s) {
  char who[96];
  lcomm_pair_message *it = queue->first;
  if (!it || !awaits_peer(it) || !is_awaited(queue)) {
    return LCOMM_OK;
  }
  it->end.waits_s = it->end.waits_s > 0 ? it->end.waits_s : now_s;
  double waited_s = now_s - it->end.waits_s;
  if (waited_s < comm->settings.timeout_s) {
    return LCOMM_OK;
  }
  return lcomm_fail_peer(comm, LCOMM_ERR_TIMEOUT, it->peer,
                         "a %s of %llu %s %s %s has waited for %g s: that rank does not %s. Does "
                         "every send have a receive%s? LCOMM_TIMEOUT_S sets the time-out.",
                         it->is_send ? "send" : "receive", (unsigned long long)it->what.count,
                         lcomm_dtype_name(it->what.dtype), it->is_send ? "to" : "from",
                         lcomm_comm_who(comm, it->peer, who, sizeof(who)), waited_s,
                         it->is_send ? "receive" : "send",
                         it->graph_channel > 0 ? ", captured into a graph and launched as often as "
                                                 "this one"
                                               : "");
}

/* What a rank sends to itself waits for the receive, not for the device that has not come there. */
lcomm_status lcomm_pairs_check(lcomm_comm *comm) {
  double now_s = lcomm_clock_s();
  for (int peer = 0; peer < comm->size && lcomm_pairs_are_busy(comm); peer++) {
    const lcomm_pair_queue *out = lcomm_pair_queue_of(comm, true, peer);
    const lcomm_pair_queue *in = lcomm_pair_queue_of(comm, false, peer);
    bool has_both = peer == comm->rank && in->first;
    LCOMM_TRY(has_both ? LCOMM_OK : lcomm_pair_queue_check(comm, out, now_s));
    LCOMM_TRY(lcomm_pair_queue_check(comm, in, now_s));
  }
  return lcomm_pair_replays_check(comm, now_s);
}

/* ----------------------------------------------------------------- requests */

/* Those before it in its queue have had their time from here on, too. */
void lcomm_pair_await(lcomm_comm *comm, lcomm_pair_message *message) {
  lcomm_pair_queue *queue = lcomm_pair_queue_of(comm, message->is_send, message->peer);
  if (!message->end.is_awaited && !message->end.over && !is_awaited(queue)) {
    queue->first->end.waits_s = 0;
  }
  message->end.is_awaited = true;
}

/* A receive before a send, should both be waited for. */
lcomm_summary_row *lcomm_pairs_awaited_row(lcomm_comm *comm) {
  lcomm_summary_row *rows = comm->observers.summary.rows, *sends = NULL;
  for (int peer = 0; peer < comm->size && lcomm_pairs_are_busy(comm); peer++) {
    if (is_awaited(lcomm_pair_queue_of(comm, false, peer))) {
      return &rows[LCOMM_SUMMARY_RECEIVES];
    }
    sends = is_awaited(lcomm_pair_queue_of(comm, true, peer)) ? &rows[LCOMM_SUMMARY_SENDS] : sends;
  }
  return sends;
}

const bool *lcomm_pair_over(const lcomm_pair_message *message) {
  return &message->end.over;
}

lcomm_comm *lcomm_pair_owner(const lcomm_pair_message *message) {
  return message->owner;
}

lcomm_status lcomm_pair_collect(lcomm_comm *comm, lcomm_pair_message *message) {
  message->next = comm->pairs->spare;
  comm->pairs->spare = message;
  return message->end.status;
}

lcomm_status lcomm_pairs_finish(lcomm_comm *comm) {
  bool waits = comm->pairs && comm->pairs->streamed > 0;
  return waits ? lcomm_operations_wait(comm, &comm->pairs->is_idle) : LCOMM_OK;
}

/* ------------------------------------------------------------------- groups */

lcomm_status lcomm_pair_group_begin(lcomm_comm *comm) {
  LCOMM_TRY(lcomm_pairs_make(comm));
  comm->pairs->group.depth++;
  return LCOMM_OK;
}

bool lcomm_pair_group_is_open(const lcomm_comm *comm) {
  return comm->pairs && comm->pairs->group.depth > 0;
}

lcomm_status lcomm_pair_group_put_off(lcomm_comm *comm, const lcomm_pair_call *call) {
  lcomm_pair_group *group = &comm->pairs->group;
  if (group->count == group->room) {
    size_t room = group->room > 0 ? 2 * group->room : 16;
    lcomm_pair_call *more = realloc(group->receives, room * sizeof *more);
    if (!more) {
      return LCOMM_ERR_MEMORY;
    }
    group->receives = more;
    group->room = room;
  }
  group->receives[group->count++] = *call;
  return LCOMM_OK;
}

static void await_queue(lcomm_comm *comm, lcomm_pair_queue *queue) {
  for (lcomm_pair_message *it = queue->first; it; it = it->next) {
    if (it->end.is_grouped) {
      lcomm_pair_await(comm, it);
    }
  }
}

static lcomm_status wait_for_group(lcomm_comm *comm) {
  for (int peer = 0; peer < comm->size; peer++) {
    await_queue(comm, lcomm_pair_queue_of(comm, true, peer));
    await_queue(comm, lcomm_pair_queue_of(comm, false, peer));
  }
  return lcomm_operations_wait(comm, &comm->pairs->group.is_over);
}

lcomm_status lcomm_pair_group_end(lcomm_comm *comm,
                                  lcomm_status (*begin)(lcomm_comm *comm,
                                                        const lcomm_pair_call *calls,
                                                        size_t count)) {
  lcomm_pair_group *group = &comm->pairs->group;
  if (--group->depth > 0) {
    return LCOMM_OK;
  }
  lcomm_status status = group->count > 0 ? begin(comm, group->receives, group->count) : LCOMM_OK;
  group->count = 0;
  LCOMM_TRY(status);
  if (!group->is_over) {
    LCOMM_TRY(wait_for_group(comm));
  }
  return (lcomm_status)atomic_load(&comm->errors.status);
}

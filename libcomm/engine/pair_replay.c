/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Replays of captured messages between two ranks, begun where the device has come to them. */

#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/pair_recording.h"

static void put(uint32_t *number, uint32_t value) {
  __atomic_store_n(number, value, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------ one replay */

static void begin(lcomm_comm *comm, lcomm_pair_recording *it) {
  size_t head = offsetof(lcomm_pair_message, bytes); /* data of a message before may stay */
  lcomm_pair_numbers *numbers = it->fresh.block->numbers;
  put(&numbers->free, 0);
  memcpy(&it->message, &it->fresh, head);
  it->state = LCOMM_PAIR_REPLAY_MOVES;
  comm->recordings.moved_s = lcomm_clock_s();
  lcomm_pair_append(comm, &it->queue, &it->message);
  put(&numbers->seen, 1); /* the device may be through from here on */
}

/* All numbers are back, and the device may go on to the next one. */
static void release(lcomm_comm *comm, lcomm_pair_recording *it) {
  lcomm_pair_numbers *numbers = it->fresh.block->numbers;
  put(&numbers->there, 0);
  put(&numbers->begun, 0);
  put(&numbers->left, 0);
  put(&numbers->seen, 0);
  it->state = LCOMM_PAIR_REPLAY_IDLE;
  comm->recordings.moved_s = lcomm_clock_s();
  put(&numbers->free, 1); /* lanes await it meanwhile */
}

static void look(lcomm_comm *comm, lcomm_pair_recording *it, bool *moved) {
  const lcomm_pair_numbers *numbers = it->fresh.block->numbers;
  if (it->fresh.block->passes) {
    return;
  }
  if (it->state == LCOMM_PAIR_REPLAY_IDLE && lcomm_pair_reached(&numbers->begun, 1)) {
    *moved = true;
    begin(comm, it);
  }
  if (it->state == LCOMM_PAIR_REPLAY_DRAINS && lcomm_pair_reached(&numbers->left, 1)) {
    *moved = true;
    release(comm, it);
  }
}

/* ------------------------------------------------------------------- messages */

/* What this rank sends itself; NULL: that is not in flight. */
static lcomm_pair_recording *find_own(const lcomm_comm *comm, const lcomm_pair_recording *of) {
  lcomm_pair_recording *it = comm->recordings.pairs;
  while (it && (it->fresh.is_send == of->fresh.is_send || it->fresh.peer != comm->rank ||
                it->fresh.graph_channel != of->fresh.graph_channel || !it->queue.first)) {
    it = it->next;
  }
  return it;
}

static lcomm_status move_own(lcomm_comm *comm, lcomm_pair_recording *in, bool *moved) {
  lcomm_pair_recording *out = in->fresh.is_send ? NULL : find_own(comm, in);
  return out ? lcomm_pair_queue_move_own(comm, &out->queue, &in->queue, moved) : LCOMM_OK;
}

static lcomm_status move_one(lcomm_comm *comm, lcomm_pair_recording *it, bool *moved) {
  if (!it->queue.first) {
    return LCOMM_OK;
  }
  return it->fresh.peer == comm->rank ? move_own(comm, it, moved)
                                      : lcomm_pair_queue_move(comm, &it->queue, moved);
}

static void drain(lcomm_pair_recording *it) {
  bool is_over = it->state == LCOMM_PAIR_REPLAY_MOVES && !it->queue.first;
  it->state = is_over ? LCOMM_PAIR_REPLAY_DRAINS : it->state;
}

lcomm_status lcomm_pair_replays_move(lcomm_comm *comm, bool *moved) {
  for (lcomm_pair_recording *it = comm->recordings.pairs; it; it = it->next) {
    look(comm, it, moved);
    LCOMM_TRY(move_one(comm, it, moved));
    drain(it);
  }
  return LCOMM_OK;
}

/* ---------------------------------------------------------------- time-outs, end */

/* What a rank sends to itself waits for the receive, not for the device that has not come there. */
lcomm_status lcomm_pair_replays_check(lcomm_comm *comm, double now_s) {
  for (const lcomm_pair_recording *it = comm->recordings.pairs; it; it = it->next) {
    bool has_both = it->fresh.is_send && it->fresh.peer == comm->rank && find_own(comm, it);
    LCOMM_TRY(has_both ? LCOMM_OK : lcomm_pair_queue_check(comm, &it->queue, now_s));
  }
  return LCOMM_OK;
}

void lcomm_pair_replays_cancel(lcomm_comm *comm) {
  for (lcomm_pair_recording *it = comm->recordings.pairs; it; it = it->next) {
    lcomm_pair_queue_cancel(comm, &it->queue);
    drain(it);
  }
}

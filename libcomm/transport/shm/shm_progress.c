/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What has arrived, and what waits to leave. */

#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/transport/shm/shm_internal.h"

enum { CHECK_CALLS = 64 }; /* calls of progress between two looks at the clock */

static const double CHECK_S = 0.01; /* between two looks at the other processes */

/* -------------------------------------------------------------- entries */

/* Is the description of a long message possible? It is a copy of our own. */
static bool is_possible(const lcomm_shm_long *there, uint32_t kind) {
  if (there->size <= LCOMM_SHM_INLINE || there->size > LCOMM_SHM_LONGEST ||
      there->slot >= LCOMM_SHM_SLOTS) {
    return false;
  }
  return kind != LCOMM_SHM_MAPPED ||
         (there->region < LCOMM_SHM_REGIONS && there->file >= 0 &&
          there->region_size <= LCOMM_SHM_LONGEST && there->size <= there->region_size &&
          there->offset <= there->region_size - there->size);
}

static bool take_long(lcomm_shm *t, lcomm_shm_peer *peer, lcomm_shm_entry *entry, uint32_t kind) {
  lcomm_shm_long there;
  uint32_t tag = entry->tag, generation = entry->generation;
  memcpy(&there, lcomm_shm_data(entry), sizeof(there));
  /* What is checked below is what was copied, whatever the peer writes now. */
  atomic_signal_fence(memory_order_seq_cst);
  if (!is_possible(&there, kind)) {
    return false;
  }
  lcomm_shm_arrive_long(t, peer, tag, kind, generation, &there);
  return true;
}

/* Take in one entry; false when it cannot be. */
static bool take(lcomm_shm *t, lcomm_shm_peer *peer, lcomm_shm_entry *entry, uint32_t kind,
                 size_t size) {
  switch (kind) {
  case LCOMM_SHM_MESSAGE:
    lcomm_shm_arrive_short(t, peer, entry->tag, lcomm_shm_data(entry), size);
    return true;
  case LCOMM_SHM_MAPPED:
  case LCOMM_SHM_READ:
  case LCOMM_SHM_STREAM:
    return size == sizeof(lcomm_shm_long) && take_long(t, peer, entry, kind);
  case LCOMM_SHM_PIECE:
    lcomm_shm_arrive_piece(t, peer, entry->tag, entry->generation, lcomm_shm_data(entry), size);
    return true;
  case LCOMM_SHM_CONTROL:
    if (size != LCOMM_CONTROL_SIZE) {
      return false;
    }
    lcomm_shm_arrive_control(peer, lcomm_shm_data(entry));
    return true;
  default:
    return false;
  }
}

static void advance(lcomm_shm_peer *peer, uint64_t span) {
  if (lcomm_shm_advance(&peer->in, span)) {
    lcomm_shm_wake(peer);
  }
}

void lcomm_shm_drain(lcomm_shm *t, lcomm_shm_peer *peer) {
  uint64_t end = peer->in.at + LCOMM_SHM_RING; /* a fast sender does not hold us for ever */
  while (peer->in.at < end && peer->fault == LCOMM_SHM_FINE) {
    uint64_t word = lcomm_shm_look(&peer->in);
    if ((uint32_t)word == 0) {
      return;
    }
    t->news = true;
    uint32_t kind = lcomm_shm_word_kind(word);
    size_t size = lcomm_shm_word_size(word);
    uint64_t left = lcomm_shm_left(peer->in.at);
    if ((uint32_t)word != lcomm_shm_stamp(peer->in.at) || !lcomm_shm_fits(&peer->in, size)) {
      lcomm_shm_give_up(t, peer, LCOMM_SHM_MALFORMED);
    } else if (kind == LCOMM_SHM_PAD && left < LCOMM_SHM_RING) {
      advance(peer, left);
    } else if (take(t, peer, lcomm_shm_place(peer->in.ring, peer->in.at), kind, size)) {
      advance(peer, lcomm_shm_span(size));
    } else {
      lcomm_shm_give_up(t, peer, LCOMM_SHM_MALFORMED);
    }
  }
}

/* -------------------------------------------------------------- progress */

static void push(lcomm_shm *t, lcomm_shm_peer *peer) {
  if (peer->queue.first) {
    lcomm_shm_flush(t, peer);
  }
  if (peer->sends.used_count > 0) {
    lcomm_shm_take_answers(t, peer);
    lcomm_shm_pump(t, peer);
  }
  if (peer->control.waits) {
    lcomm_shm_control_resend(peer);
  }
}

void lcomm_shm_progress(lcomm_transport *transport) {
  lcomm_shm *t = lcomm_shm_of(transport);
  for (int i = 0; i < t->reached_count; i++) {
    lcomm_shm_peer *peer = t->reached[i];
    peer->peek.active = false; /* what was looked at and not dropped comes in as all else */
    peer->peek.unasked = NULL;
    if (peer->fault != LCOMM_SHM_FINE) {
      continue;
    }
    if ((uint32_t)lcomm_shm_look(&peer->in) != 0) {
      lcomm_shm_drain(t, peer);
    }
    if (peer->sends.used_count > 0 || peer->queue.first || peer->control.waits) {
      push(t, peer);
    }
  }
  if (t->wakeup.until_check-- > 0) {
    return;
  }
  t->wakeup.until_check = CHECK_CALLS;
  double now_s = lcomm_clock_s();
  if (now_s >= t->wakeup.next_check_s) {
    t->wakeup.next_check_s = now_s + CHECK_S;
    lcomm_shm_check_peers(t);
  }
}

/* ------------------------------------------------------ peek and drop */

/* Would a message with this tag go to somebody else first? */
static bool is_claimed(lcomm_shm_peer *peer, uint32_t tag) {
  return peer->fault != LCOMM_SHM_FINE ||
         (peer->posted_count > 0 && lcomm_shm_list_find(peer->posted, tag));
}

/* A message that progress() has taken in while this rank waited for another one. Without it
 * a rank that is once behind would look for every later message where it is no more. */
static bool peek_unasked(lcomm_shm_peer *peer, lcomm_shm_record *record, const void **bytes,
                         size_t *size) {
  if (record->way != LCOMM_SHM_MESSAGE || record->state == LCOMM_SHM_STARVED ||
      peer->fault != LCOMM_SHM_FINE) {
    return false;
  }
  peer->peek.unasked = record;
  *bytes = record->view;
  *size = record->size;
  return true;
}

static void drop_unasked(lcomm_shm *t, lcomm_shm_peer *peer) {
  lcomm_shm_record *record = peer->peek.unasked;
  peer->peek.unasked = NULL;
  lcomm_shm_list_remove(lcomm_shm_bucket(peer->unasked, record->tag), record);
  peer->unasked_count--;
  lcomm_shm_release(t, record);
}

/* An entry that peek cannot give: skip the end of the ring, leave all else. */
static bool skip_pad(lcomm_shm_peer *peer, uint64_t word) {
  uint64_t left = lcomm_shm_left(peer->in.at);
  if (lcomm_shm_word_kind(word) != LCOMM_SHM_PAD || left == LCOMM_SHM_RING ||
      peer->fault != LCOMM_SHM_FINE) {
    return false;
  }
  advance(peer, left);
  return true;
}

bool lcomm_shm_peek(lcomm_transport *transport, int rank, uint32_t tag, const void **bytes,
                    size_t *size) {
  lcomm_shm_peer *peer = lcomm_shm_of(transport)->of[rank];
  if (!peer) {
    return false;
  }
  lcomm_shm_record *unasked =
      peer->unasked_count > 0 ? lcomm_shm_list_find(peer->unasked, tag) : NULL;
  if (unasked) {
    return peek_unasked(peer, unasked, bytes, size);
  }
  uint64_t word = lcomm_shm_look(&peer->in);
  if ((uint32_t)word != lcomm_shm_stamp(peer->in.at)) {
    return false;
  }
  lcomm_shm_entry *entry = lcomm_shm_place(peer->in.ring, peer->in.at);
  if (lcomm_shm_word_kind(word) != LCOMM_SHM_MESSAGE) {
    return skip_pad(peer, word) && lcomm_shm_peek(transport, rank, tag, bytes, size);
  }
  if (entry->tag != tag || !lcomm_shm_fits(&peer->in, lcomm_shm_word_size(word)) ||
      is_claimed(peer, tag)) {
    return false;
  }
  peer->peek.active = true;
  *bytes = lcomm_shm_data(entry);
  *size = lcomm_shm_word_size(word);
  peer->peek.size = *size;
  return true;
}

void lcomm_shm_drop(lcomm_transport *transport, int rank) {
  lcomm_shm *t = lcomm_shm_of(transport);
  lcomm_shm_peer *peer = t->of[rank];
  if (peer && peer->peek.unasked) {
    drop_unasked(t, peer);
  } else if (peer && peer->peek.active) {
    peer->peek.active = false;
    advance(peer, lcomm_shm_span(peer->peek.size));
  }
}

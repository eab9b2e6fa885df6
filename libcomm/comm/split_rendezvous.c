/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/comm/split.h"

#include <string.h>

#include "libcomm/base/backoff.h"
#include "libcomm/base/clock.h"
#include "libcomm/engine/siblings.h"

enum { GATHER_TAG = LCOMM_TAG_CONTROL | 8, SPREAD_TAG = LCOMM_TAG_CONTROL | 9 };

/* -------------------------------------------------------------- messages */

static lcomm_status start(lcomm_split_rendezvous *m, int member, bool receives, void *bytes,
                          size_t size) {
  lcomm_split_message *it = &m->messages[member];
  int peer = m->members[member];
  lcomm_transport *link = lcomm_comm_link(m->parent, peer);
  uint32_t tag = receives == (m->me == 0) ? GATHER_TAG : SPREAD_TAG;
  lcomm_status status = receives ? link->table->receive(link, peer, tag, bytes, size, &it->transfer)
                                 : link->table->send(link, peer, tag, bytes, size, &it->transfer);
  it->peer = peer;
  it->receives = receives;
  it->size = size;
  it->in_flight = status == LCOMM_OK;
  if (status != LCOMM_OK) {
    char who[96];
    return lcomm_fail_peer(m->parent, status, peer, "lcomm_split with %s: %s",
                           lcomm_comm_who(m->parent, peer, who, sizeof(who)), link->why);
  }
  return LCOMM_OK;
}

static lcomm_status look(lcomm_split_rendezvous *m, lcomm_split_message *it) {
  char who[96];
  bool over = false;
  size_t size = it->size;
  lcomm_transport *link = lcomm_comm_link(m->parent, it->peer);
  lcomm_status status = link->table->test(link, &it->transfer, &over, it->receives ? &size : NULL);
  if (status != LCOMM_OK) {
    return lcomm_fail_peer(m->parent, status, it->peer, "lcomm_split with %s: %s",
                           lcomm_comm_who(m->parent, it->peer, who, sizeof(who)), link->why);
  }
  it->in_flight = !over;
  if (over && size != it->size) {
    return lcomm_fail(m->parent, LCOMM_ERR_WIRE,
                      "lcomm_split: %s sends %zu bytes where %zu belong; install the same libcomm "
                      "on all hosts",
                      lcomm_comm_who(m->parent, it->peer, who, sizeof(who)), size, it->size);
  }
  return LCOMM_OK;
}

static lcomm_status look_at_all(lcomm_split_rendezvous *m, int *left, bool *moved) {
  *left = 0;
  lcomm_links_progress(&m->parent->links);
  for (int i = 0; i < m->count; i++) {
    lcomm_split_message *it = &m->messages[i];
    if (it->in_flight) {
      LCOMM_TRY(look(m, it));
      *moved = *moved || !it->in_flight;
      *left += it->in_flight;
    }
  }
  return LCOMM_OK;
}

/* The first member finds who is overdue; the others wait a little longer, to learn it from it. */
static double patience_s(const lcomm_split_rendezvous *m) {
  static const double LONGER_S = 5;
  double timeout_s = m->parent->settings.timeout_s;
  if (m->me == 0) {
    return timeout_s;
  }
  return timeout_s + (timeout_s / 2 < LONGER_S ? timeout_s / 2 : LONGER_S);
}

static lcomm_status give_up(const lcomm_split_rendezvous *m) {
  char who[96];
  const lcomm_split_message *it = m->messages;
  while (!it->in_flight) {
    it++;
  }
  return lcomm_fail_peer(
      m->parent, LCOMM_ERR_TIMEOUT, it->peer,
      "lcomm_split: %s %s for %.0f s. It may be dead, stopped, or in another call. "
      "LCOMM_TIMEOUT_S sets the patience.",
      lcomm_comm_who(m->parent, it->peer, who, sizeof(who)),
      it->receives ? "has sent nothing" : "takes nothing", patience_s(m));
}

static void rest(lcomm_comm *comm, lcomm_backoff *backoff) {
  static const double SLEEP_S = 0.05;
  bool others_moved = lcomm_siblings_move(comm);
  if (!lcomm_backoff_awake(backoff) && !others_moved) {
    lcomm_comm_sleep(comm, SLEEP_S);
  }
}

/* Wait until all messages are done. Meanwhile the parent's operations make progress, and failures
 * of other ranks are received. */
static lcomm_status wait_for_all(lcomm_split_rendezvous *m) {
  double moved_s = lcomm_clock_s();
  lcomm_backoff backoff = {.yields = 32};
  int left = 1;
  while (left > 0) {
    bool moved = false;
    LCOMM_TRY(look_at_all(m, &left, &moved));
    if (left == 0) {
      return LCOMM_OK;
    }
    LCOMM_TRY(lcomm_operations_move(m->parent, &moved));
    if (lcomm_clock_s() - moved_s >= patience_s(m)) {
      return give_up(m);
    }
    if (moved) {
      moved_s = lcomm_clock_s();
      lcomm_backoff_reset(&backoff);
    } else {
      rest(m->parent, &backoff);
    }
  }
  return LCOMM_OK;
}

static void cancel_all(lcomm_split_rendezvous *m) {
  for (int i = 0; i < m->count; i++) {
    lcomm_split_message *it = &m->messages[i];
    if (it->in_flight) {
      lcomm_transport *link = lcomm_comm_link(m->parent, it->peer);
      link->table->cancel(link, &it->transfer);
      it->in_flight = false;
    }
  }
}

/* -------------------------------------------------------- their bootstrap */

/* To the first member, and from there to all. `all` has this member's bytes. */
static lcomm_status gather_and_spread(lcomm_split_rendezvous *m, uint8_t *all, size_t size) {
  size_t whole = size * (size_t)m->count;
  if (m->me > 0) {
    LCOMM_TRY(start(m, 0, false, all + (size_t)m->me * size, size));
    LCOMM_TRY(wait_for_all(m));
    LCOMM_TRY(start(m, 0, true, all, whole));
    return wait_for_all(m);
  }
  for (int i = 1; i < m->count; i++) {
    LCOMM_TRY(start(m, i, true, all + (size_t)i * size, size));
  }
  LCOMM_TRY(wait_for_all(m));
  for (int i = 1; i < m->count; i++) {
    LCOMM_TRY(start(m, i, false, all, whole));
  }
  return wait_for_all(m);
}

/* The bytes travel in memory of the parent, because after a failure a peer may
 * still read them: then they are left to it. */
int lcomm_split_gather(void *context, const void *send, void *receive, size_t size) {
  lcomm_split_rendezvous *m = context;
  size_t whole = size * (size_t)m->count;
  if (size == 0) {
    return 0;
  }
  if (size > SIZE_MAX / 2 / (size_t)m->count) {
    return 1;
  }
  uint8_t *all = lcomm_links_memory_get(&m->parent->links, whole);
  if (!all) {
    lcomm_fail(m->parent, LCOMM_ERR_MEMORY, "lcomm_split: no memory for %zu bytes", whole);
    return 1;
  }
  memcpy(all + (size_t)m->me * size, send, size);
  if (gather_and_spread(m, all, size) != LCOMM_OK) {
    cancel_all(m);
    return 1;
  }
  memcpy(receive, all, whole);
  lcomm_links_memory_free(&m->parent->links, all);
  return 0;
}

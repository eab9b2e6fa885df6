/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/comm/split.h"

#include <string.h>

#include "libcomm/base/assert.h"
#include "libcomm/base/backoff.h"
#include "libcomm/base/clock.h"
#include "libcomm/engine/siblings.h"

enum { GATHER_TAG = LCOMM_TAG_CONTROL | 8, SPREAD_TAG = LCOMM_TAG_CONTROL | 9 };

/* -------------------------------------------------------------- messages */

static lcomm_status start(lcomm_split_rendezvous *m, const lcomm_split_message *wanted,
                          uint32_t tag, void *bytes) {
  LCOMM_ASSERT(m->message_count < LCOMM_SPLIT_CHILDREN_MAX);
  lcomm_split_message *it = &m->messages[m->message_count++];
  *it = *wanted;
  int peer = it->peer;
  lcomm_transport *link = lcomm_comm_link(m->parent, peer);
  lcomm_status status = it->receives
                            ? link->table->receive(link, peer, tag, bytes, it->size, &it->transfer)
                            : link->table->send(link, peer, tag, bytes, it->size, &it->transfer);
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
  for (int i = 0; i < m->message_count; i++) {
    lcomm_split_message *it = &m->messages[i];
    if (it->in_flight) {
      LCOMM_TRY(look(m, it));
      *moved = *moved || !it->in_flight;
      *left += it->in_flight;
    }
  }
  return LCOMM_OK;
}

/* The first message whose peer is overdue, `still_s` after the last one moved; NULL: none is. */
static const lcomm_split_message *find_overdue(const lcomm_split_rendezvous *m, double still_s) {
  for (int i = 0; i < m->message_count; i++) {
    const lcomm_split_message *it = &m->messages[i];
    if (it->in_flight && still_s >= it->patience_s) {
      return it;
    }
  }
  return NULL;
}

static lcomm_status give_up(const lcomm_split_rendezvous *m, const lcomm_split_message *it) {
  char who[96];
  return lcomm_fail_peer(
      m->parent, LCOMM_ERR_TIMEOUT, it->peer,
      "lcomm_split: %s %s for %.0f s. It may be dead, stopped, or in another call. "
      "LCOMM_TIMEOUT_S sets the patience.",
      lcomm_comm_who(m->parent, it->peer, who, sizeof(who)),
      it->receives ? "has sent nothing" : "takes nothing", it->patience_s);
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
      m->message_count = 0; /* the next ones take their places */
      return LCOMM_OK;
    }
    LCOMM_TRY(lcomm_operations_move(m->parent, &moved));
    const lcomm_split_message *overdue = find_overdue(m, lcomm_clock_s() - moved_s);
    if (overdue) {
      return give_up(m, overdue);
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
  for (int i = 0; i < m->message_count; i++) {
    lcomm_split_message *it = &m->messages[i];
    if (it->in_flight) {
      lcomm_transport *link = lcomm_comm_link(m->parent, it->peer);
      link->table->cancel(link, &it->transfer);
      it->in_flight = false;
    }
  }
}

/* ---------------------------------------------------------------- the tree */

/* A binomial tree: member i > 0 hangs on i without its lowest bit; the members below i, and i
 * itself, are those from i on whose number is less than i plus that bit. */

/* How many members may stand below this one, and it. */
static int span_of(const lcomm_split_rendezvous *m, int member) {
  int span = 1;
  while (member == 0 ? span < m->count : (member & span) == 0) {
    span *= 2;
  }
  return span;
}

static int end_of(const lcomm_split_rendezvous *m, int member) {
  int end = member + span_of(m, member);
  return end < m->count ? end : m->count;
}

static int levels_of(int span) {
  int levels = 0;
  while (span > 1 << levels) {
    levels++;
  }
  return levels;
}

/* Who stands above the one that is late finds it first, and tells all; the others wait longer, to
 * learn it from it: a little for each level that stands between. */
static double patience_s(const lcomm_split_rendezvous *m, int levels) {
  static const double LONGER_S = 5;
  double timeout_s = m->parent->settings.timeout_s;
  return timeout_s + levels * (timeout_s / 4 < LONGER_S ? timeout_s / 4 : LONGER_S);
}

static lcomm_split_message with_child(const lcomm_split_rendezvous *m, int child) {
  return (lcomm_split_message){.peer = m->members[child],
                               .patience_s = patience_s(m, levels_of(span_of(m, child)))};
}

static lcomm_split_message with_parent(const lcomm_split_rendezvous *m) {
  int above = 0;
  for (int member = m->me; member > 0; member &= member - 1) {
    above++;
  }
  return (lcomm_split_message){.peer = m->members[m->me & (m->me - 1)],
                               .patience_s = patience_s(m, levels_of(span_of(m, 0)) + above - 1)};
}

/* What the members below have comes here; all of it goes up. */
static lcomm_status gather(lcomm_split_rendezvous *m, uint8_t *all, size_t size) {
  int span = span_of(m, m->me);
  for (int step = 1; step < span && m->me + step < m->count; step *= 2) {
    int child = m->me + step;
    lcomm_split_message wanted = with_child(m, child);
    wanted.receives = true;
    wanted.size = (size_t)(end_of(m, child) - child) * size;
    LCOMM_TRY(start(m, &wanted, GATHER_TAG, all + (size_t)child * size));
  }
  LCOMM_TRY(wait_for_all(m));
  if (m->me > 0) {
    lcomm_split_message wanted = with_parent(m);
    wanted.size = (size_t)(end_of(m, m->me) - m->me) * size;
    LCOMM_TRY(start(m, &wanted, GATHER_TAG, all + (size_t)m->me * size));
  }
  return wait_for_all(m);
}

/* What all have comes from above, and goes down: first where most wait for it. */
static lcomm_status spread(lcomm_split_rendezvous *m, uint8_t *all, size_t whole) {
  if (m->me > 0) {
    lcomm_split_message wanted = with_parent(m);
    wanted.receives = true;
    wanted.size = whole;
    LCOMM_TRY(start(m, &wanted, SPREAD_TAG, all));
    LCOMM_TRY(wait_for_all(m));
  }
  for (int step = span_of(m, m->me) / 2; step > 0; step /= 2) {
    if (m->me + step < m->count) {
      lcomm_split_message wanted = with_child(m, m->me + step);
      wanted.size = whole;
      LCOMM_TRY(start(m, &wanted, SPREAD_TAG, all));
    }
  }
  return wait_for_all(m);
}

/* -------------------------------------------------------- their bootstrap */

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
  lcomm_status status = gather(m, all, size);
  if (status == LCOMM_OK) {
    status = spread(m, all, whole);
  }
  if (status != LCOMM_OK) {
    cancel_all(m);
    return 1;
  }
  memcpy(receive, all, whole);
  lcomm_links_memory_free(&m->parent->links, all);
  return 0;
}

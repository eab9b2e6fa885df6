/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The meeting at rank 0: it listens until all ranks are there, or the time is up.
 * Strangers take no place from a rank: they are at most LCOMM_STORE_VISITORS_MAX,
 * for HELLO_S each, and make room for whoever comes after them. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/base/clock.h"
#include "libcomm/bootstrap/store/store_address.h"
#include "libcomm/bootstrap/store/store_door.h"

static const double HELLO_S = 5;    /* for a visitor to say who it is */
static const double PORT_S = 5;     /* for another job's meeting to leave the port */
static const double BREATH_S = 0.1; /* before accept is tried again without descriptors */

/* ------------------------------------------------------------- the others */

void lcomm_store_member_lose(lcomm_store_rendezvous *m, int rank) {
  lcomm_store_lose(&m->store->peers[rank]);
  m->missing++;
}

void lcomm_store_member_check(lcomm_store_rendezvous *m, int rank) {
  if (!lcomm_socket_is_silent(m->store->peers[rank].fd)) {
    lcomm_store_member_lose(m, rank);
  }
}

static void forget_those_who_left(lcomm_store_rendezvous *m) {
  int still = 0;
  for (int i = 0; i < m->visitor_count; i++) {
    if (m->visitors[i].fd >= 0) {
      m->visitors[still++] = m->visitors[i];
    }
  }
  m->visitor_count = still;
}

/* The visitor that has been here longest without becoming a member goes: ranks
 * greet as soon as they are connected. False: there is none. */
static bool make_room(lcomm_store_rendezvous *m) {
  int before = m->visitor_count;
  forget_those_who_left(m);
  if (m->visitor_count < before) {
    return true;
  }
  if (m->visitor_count == 0) {
    return false;
  }
  lcomm_store_visitor_part(&m->visitors[0]);
  forget_those_who_left(m);
  return true;
}

/* The next one that has connected, or -1. */
static int take_in(lcomm_store_rendezvous *m, int listener) {
  bool full = false;
  if (m->visitor_count == LCOMM_STORE_VISITORS_MAX) {
    make_room(m);
  }
  int fd = lcomm_socket_accept(listener, &full);
  while (fd < 0 && full && make_room(m)) {
    fd = lcomm_socket_accept(listener, &full);
  }
  if (fd < 0 && full) {
    m->starved = true;
    m->accept_from_s = lcomm_clock_s() + BREATH_S;
  }
  return fd;
}

/* Some of those who have connected; the others are looked at in between. */
static void let_in(lcomm_store_rendezvous *m, int listener) {
  enum { AT_ONCE = LCOMM_STORE_VISITORS_MAX / 4 };
  for (int i = 0; i < AT_ONCE; i++) {
    int fd = take_in(m, listener);
    if (fd < 0) {
      return;
    }
    lcomm_store_visitor *it = &m->visitors[m->visitor_count++];
    *it = (lcomm_store_visitor){.fd = fd, .until_s = lcomm_clock_s() + HELLO_S};
    lcomm_store_visitor_receive(m, it); /* most have greeted already */
  }
}

/* ------------------------------------------------------------- one round */

/* Only sockets that there are: poll takes no more than the process may open. */
static int gather_polls(lcomm_store_rendezvous *m) {
  lcomm_store *store = m->store;
  bool room = lcomm_clock_s() >= m->accept_from_s;
  int count = 0;
  for (int i = 0; i < m->visitor_count; i++) {
    store->polls[count++] = (struct pollfd){.fd = m->visitors[i].fd, .events = POLLIN};
  }
  for (int i = 0; i < m->listener_count; i++) {
    store->polls[count++] =
        (struct pollfd){.fd = m->listeners[i], .events = (short)(room ? POLLIN : 0)};
  }
  for (int rank = 1; rank < store->size; rank++) {
    if (store->peers[rank].fd >= 0) {
      store->polls[count++] = (struct pollfd){.fd = store->peers[rank].fd, .events = POLLIN};
    }
  }
  for (int i = 0; i < m->beside_count; i++) {
    store->polls[count++] = (struct pollfd){.fd = m->beside[i], .events = POLLIN};
  }
  return count;
}

/* Members before visitors: a rank that comes again finds its place free. */
static void look_at_all(lcomm_store_rendezvous *m) {
  lcomm_store *store = m->store;
  int visitors = m->visitor_count;
  const struct pollfd *member = store->polls + visitors + m->listener_count;
  for (int rank = 1; rank < store->size; rank++) {
    if (store->peers[rank].fd >= 0 && (member++)->revents != 0) {
      lcomm_store_member_check(m, rank);
    }
  }
  for (int i = 0; i < visitors; i++) {
    if (store->polls[i].revents != 0) {
      lcomm_store_visitor_receive(m, &m->visitors[i]);
    }
  }
  for (int i = 0; i < m->listener_count; i++) {
    if (store->polls[visitors + i].revents != 0) {
      let_in(m, m->listeners[i]);
    }
  }
}

lcomm_status lcomm_store_round(lcomm_store_rendezvous *m, double until_s) {
  lcomm_store *store = m->store;
  int count = gather_polls(m);
  double wake_s = until_s < store->next_wait_s ? until_s : store->next_wait_s;
  int wait_ms = lcomm_poll_ms(wake_s);
  if (m->accept_from_s > lcomm_clock_s() || m->visitor_count > 0) {
    wait_ms = wait_ms < 100 ? wait_ms : 100;
  }
  int ready = lcomm_socket_poll(store->polls, count, wait_ms);
  if (ready < 0) {
    return lcomm_store_fail(store, LCOMM_ERR_SYSTEM, "cannot wait for %d sockets: %s", count,
                            strerror(errno));
  }
  if (ready > 0) {
    look_at_all(m);
  }
  for (int i = 0; i < m->visitor_count; i++) {
    lcomm_store_visitor_mind_time(m, &m->visitors[i]);
  }
  forget_those_who_left(m);
  lcomm_store_say_wait(store);
  return LCOMM_OK;
}

/* ---------------------------------------------------------- the whole */

static lcomm_status listen_to_all(lcomm_store_rendezvous *m) {
  lcomm_store *store = m->store;
  const lcomm_launcher_env *launcher = store->launcher;
  lcomm_why why = {.text = ""};
  bool in_use = false;
  double patience_s = store->timeout_s / 2 < PORT_S ? store->timeout_s / 2 : PORT_S;
  double until_s = lcomm_clock_s() + patience_s;
  for (;;) {
    lcomm_store_door_yield(launcher->port);
    m->listener_count = lcomm_socket_listen(launcher->address, launcher->port, launcher->one_host,
                                            m->listeners, &in_use, &why);
    if (m->listener_count > 0) {
      return LCOMM_OK;
    }
    if (lcomm_clock_s() >= until_s) {
      return lcomm_store_fail(store, LCOMM_ERR_TRANSPORT, "cannot listen at MASTER_ADDR %s: %s; %s",
                              store->where, why.text,
                              in_use ? "another program has the port: set LCOMM_PORT or "
                                       "MASTER_PORT to a free one on all ranks"
                                     : "set MASTER_ADDR to the name or address of rank 0's host");
    }
    poll(NULL, 0, 50);
  }
}

/* "3, 5-7 and more", and whether one of them was here. */
static bool name_missing(const lcomm_store *store, char *text, size_t size) {
  size_t used = 0;
  bool was_here = false;
  text[0] = '\0';
  for (int rank = 1, last = 1; rank < store->size; rank = last + 1) {
    last = rank;
    if (store->peers[rank].fd >= 0) {
      continue;
    }
    was_here = was_here || store->peers[rank].was_here;
    while (last + 1 < store->size && store->peers[last + 1].fd < 0) {
      was_here = was_here || store->peers[++last].was_here;
    }
    if (used + 40 > size) {
      snprintf(text + used, size - used, " and more");
      return was_here;
    }
    used += (size_t)snprintf(text + used, size - used, last > rank ? "%s%d-%d" : "%s%d",
                             used > 0 ? ", " : "", rank, last);
  }
  return was_here;
}

static lcomm_status say_who_is_missing(lcomm_store_rendezvous *m) {
  lcomm_store *store = m->store;
  char missing[160], refused[224] = "";
  bool was_here = name_missing(store, missing, sizeof(missing));
  if (m->refused > 0) {
    snprintf(refused, sizeof(refused), ". Refused: %d, the last one because %s", m->refused,
             m->refusal);
  }
  return lcomm_store_fail(
      store, LCOMM_ERR_TIMEOUT,
      "%d of the %s=%d ranks did not come to %s within %g s: %s%s. See whether they were started, "
      "have the same MASTER_ADDR and port, and can reach it through firewalls; or raise "
      "LCOMM_TIMEOUT_S%s%s%s",
      m->missing, store->launcher->size_from, store->size, store->where, store->timeout_s, missing,
      was_here ? " (some came and went again)" : "",
      m->starved ? "; rank 0 had no file descriptor left for more: raise `ulimit -n` there" : "",
      refused, lcomm_launcher_env_supposed());
}

void lcomm_store_end_meeting(lcomm_store_rendezvous *m) {
  for (int i = 0; i < m->listener_count; i++) {
    close(m->listeners[i]);
  }
  for (int i = 0; i < m->visitor_count; i++) {
    lcomm_store_visitor_part(&m->visitors[i]);
  }
  free(m->visitors);
}

/* Until all are here, the time is up, or poll fails. Where the meeting has failed
 * before it began, all who come are told why. */
static lcomm_status meet_all(lcomm_store_rendezvous *m) {
  lcomm_store *store = m->store;
  lcomm_status status = LCOMM_OK;
  while (status == LCOMM_OK && m->missing > 0) {
    status = lcomm_store_round(m, m->until_s);
    for (int rank = 1; m->missing == 0 && rank < store->size; rank++) {
      if (store->peers[rank].fd >= 0) {
        lcomm_store_member_check(m, rank);
      }
    }
    if (status == LCOMM_OK && m->missing > 0 && lcomm_clock_s() >= m->until_s) {
      status = say_who_is_missing(m);
    }
  }
  return store->status;
}

/* Where the parent of a rank is. */
static lcomm_store_place place_of_parent(const lcomm_store *store, int rank) {
  lcomm_store_branch branch;
  lcomm_store_place place = {.way = LCOMM_STORE_WAY_ROOT};
  lcomm_store_branch_find(store->size, store->shape.fan_out, rank, &branch);
  if (branch.parent > 0) {
    const lcomm_store_peer *parent = &store->peers[branch.parent];
    lcomm_socket_place_of(parent->fd, &place);
    place.port = (uint16_t)parent->port;
  }
  bool known = place.way == LCOMM_STORE_WAY_ROOT || place.port > 0;
  return known ? place : (lcomm_store_place){.way = LCOMM_STORE_WAY_STAR};
}

/* One parent that nobody can find is enough for a star. */
static bool knows_all_places(const lcomm_store *store) {
  for (int rank = 1; rank < store->size; rank++) {
    if (place_of_parent(store, rank).way == LCOMM_STORE_WAY_STAR) {
      return false;
    }
  }
  return true;
}

/* All are here. */
static lcomm_status welcome_all(lcomm_store *store) {
  bool tree = store->may_be_tree && knows_all_places(store);
  for (int rank = 1; rank < store->size; rank++) {
    uint8_t bytes[LCOMM_STORE_HEADER_SIZE + LCOMM_STORE_PLACE_SIZE];
    lcomm_store_place place = {.way = LCOMM_STORE_WAY_STAR};
    if (tree) {
      place = place_of_parent(store, rank);
    }
    lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_WELCOME, LCOMM_STORE_PLACE_SIZE}, bytes);
    lcomm_store_pack_place(&place, bytes + LCOMM_STORE_HEADER_SIZE);
    lcomm_socket_expect(store->peers[rank].fd, 0);
    lcomm_store_say_bytes(store->peers[rank].fd, bytes, sizeof(bytes));
  }
  return tree ? lcomm_store_root_link(store) : LCOMM_OK;
}

lcomm_status lcomm_store_open(lcomm_store *store) {
  lcomm_store_rendezvous m = {.store = store,
                              .missing = store->size - 1,
                              .until_s = lcomm_clock_s() + store->timeout_s,
                              .visitors = calloc(LCOMM_STORE_VISITORS_MAX, sizeof *m.visitors)};
  if (!m.visitors) {
    return lcomm_store_fail(store, LCOMM_ERR_MEMORY, "out of memory");
  }
  listen_to_all(&m);
  if (m.listener_count > 0) {
    meet_all(&m);
  }
  lcomm_store_end_meeting(&m); /* before the ranks know: what they do next may need the port */
  if (store->status != LCOMM_OK) {
    return lcomm_store_fail_all(store);
  }
  return welcome_all(store);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How the tree comes to be, at all ranks but 0: each connects to its parent, takes in its children,
 * and tells rank 0. Where a parent cannot be reached, behind a firewall say, rank 0 calls for the
 * star, whose connections there are already. */

#include <stdlib.h>
#include <unistd.h>

#include "libcomm/base/clock.h"
#include "libcomm/bootstrap/store/store_internal.h"

static const double CONNECT_S = 5; /* to a parent, whose system answers for it */

typedef struct linking {
  lcomm_store_rendezvous meeting; /* of the children */
  lcomm_store_inbox from_parent;
  double until_s;
  bool unreached; /* there is no way to the parent */
  bool answered, decided;
} linking;

void lcomm_store_listen(lcomm_store *store) {
  if (store->listener >= 0) { /* of an attempt that failed, perhaps from another address */
    close(store->listener);
  }
  store->listener = -1;
  store->port = 0;
  if (store->may_be_tree && store->branch.child_count > 0) {
    store->listener =
        lcomm_socket_listen_beside(store->fd, store->launcher->one_host, &store->port);
  }
}

static void lose_parent(lcomm_store *store, linking *l) {
  l->unreached = true;
  if (store->parent.fd >= 0) {
    close(store->parent.fd);
    store->parent.fd = -1;
  }
}

static void connect_to_parent(lcomm_store *store, linking *l) {
  uint8_t handshake[LCOMM_STORE_HANDSHAKE_SIZE];
  lcomm_why why;
  store->parent.is_linked = store->parent.place.way == LCOMM_STORE_WAY_ROOT;
  if (store->parent.is_linked) {
    return;
  }
  store->parent.fd =
      lcomm_socket_connect_to(&store->parent.place, store->fd, lcomm_clock_s() + CONNECT_S, &why);
  lcomm_store_greet(store, 1, handshake);
  if (store->parent.fd < 0 ||
      !lcomm_store_say_bytes(store->parent.fd, handshake, sizeof(handshake))) {
    lose_parent(store, l);
  }
}

/* WAIT says that we are let in. */
static void hear_parent(lcomm_store *store, linking *l) {
  lcomm_store_room room = {.other = store->reason, .other_size = sizeof(store->reason)};
  if (store->parent.fd < 0 || store->parent.is_linked) {
    return;
  }
  lcomm_store_heard heard = lcomm_store_hear(store->parent.fd, &l->from_parent, &room);
  store->parent.is_linked =
      heard == LCOMM_STORE_HEARD_FRAME && l->from_parent.frame.kind == LCOMM_STORE_WAIT;
  if (heard != LCOMM_STORE_HEARD_NOTHING && !store->parent.is_linked) {
    lose_parent(store, l);
  }
}

static void answer(lcomm_store *store, linking *l, lcomm_store_kind kind) {
  if (!l->answered) {
    lcomm_store_say(store->fd, kind);
    l->answered = true;
  }
}

static lcomm_status take_frame(lcomm_store *store, linking *l) {
  switch (store->from_root.frame.kind) {
  case LCOMM_STORE_WAIT:
    return LCOMM_OK;
  case LCOMM_STORE_FAILED:
    return lcomm_store_fail_reason(store, store->from_root.frame, store->reason);
  case LCOMM_STORE_TREE:
    l->decided = store->tree = true;
    return l->answered ? LCOMM_OK : lcomm_store_fail_strange(store);
  case LCOMM_STORE_STAR:
    answer(store, l, LCOMM_STORE_ALONE);
    l->decided = true;
    return LCOMM_OK;
  default:
    return lcomm_store_fail_strange(store);
  }
}

static lcomm_status hear_root(lcomm_store *store, linking *l) {
  lcomm_store_room room = {.other = store->reason, .other_size = sizeof(store->reason)};
  lcomm_store_heard heard = LCOMM_STORE_HEARD_FRAME;
  while (!l->decided) {
    heard = lcomm_store_hear(store->fd, &store->from_root, &room);
    if (heard != LCOMM_STORE_HEARD_FRAME) {
      break;
    }
    l->until_s = lcomm_clock_s() + store->timeout_s;
    LCOMM_TRY(take_frame(store, l));
  }
  return heard == LCOMM_STORE_HEARD_END       ? lcomm_store_fail_gone(store)
         : heard == LCOMM_STORE_HEARD_STRANGE ? lcomm_store_fail_strange(store)
                                              : LCOMM_OK;
}

/* Children speak once the tree is used, so nobody looks at them after the answer. */
static lcomm_status wait_once(lcomm_store *store, linking *l) {
  lcomm_store_rendezvous *m = &l->meeting;
  int link = store->parent.is_linked ? -1 : store->parent.fd;
  if (l->answered || store->branch.child_count == 0) {
    struct pollfd set[] = {{.fd = store->fd, .events = POLLIN}, {.fd = link, .events = POLLIN}};
    lcomm_socket_poll(set, 2, lcomm_poll_ms(l->until_s));
    return LCOMM_OK;
  }
  m->beside[0] = store->fd;
  m->beside[1] = link;
  m->beside_count = 2;
  return lcomm_store_round(m, l->until_s);
}

static lcomm_status link_up(lcomm_store *store, linking *l) {
  connect_to_parent(store, l);
  l->until_s = lcomm_clock_s() + store->timeout_s;
  while (!l->decided) {
    if (l->unreached) {
      answer(store, l, LCOMM_STORE_ALONE);
    } else if (store->parent.is_linked && l->meeting.missing == 0) {
      answer(store, l, LCOMM_STORE_LINKED);
    }
    LCOMM_TRY(wait_once(store, l));
    hear_parent(store, l);
    LCOMM_TRY(hear_root(store, l));
    if (!l->decided && lcomm_clock_s() >= l->until_s) {
      return lcomm_store_fail_silent(store);
    }
  }
  return LCOMM_OK;
}

static void drop_links(lcomm_store *store) {
  for (int rank = 1; store->peers && rank < store->size; rank++) {
    if (store->peers[rank].fd >= 0) {
      lcomm_store_lose(&store->peers[rank]);
    }
  }
  if (store->parent.fd >= 0) {
    close(store->parent.fd);
    store->parent.fd = -1;
  }
}

lcomm_status lcomm_store_link(lcomm_store *store) {
  linking l = {.meeting = {.store = store, .missing = store->branch.child_count}};
  lcomm_store_rendezvous *m = &l.meeting;
  bool leaf = store->branch.child_count == 0;
  if (!leaf) {
    m->visitors = calloc(LCOMM_STORE_VISITORS_MAX, sizeof *m->visitors);
    m->listeners[m->listener_count++] = store->listener;
    store->listener = -1;
  }
  lcomm_status status = leaf || m->visitors
                            ? link_up(store, &l)
                            : lcomm_store_fail(store, LCOMM_ERR_MEMORY, "out of memory");
  lcomm_store_end_meeting(m);
  if (!store->tree) {
    drop_links(store);
  }
  return status;
}

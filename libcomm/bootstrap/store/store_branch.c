/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* An allgather along the tree, at all ranks but 0: bytes come from the children, go to the parent,
 * come back whole and go to the children. Each rank tells rank 0 when it enters, when its parent
 * has all, and which neighbour it has lost; rank 0 decides what has failed, and tells all. */

#include <string.h>
#include <unistd.h>

#include "codecs/little_endian.h"
#include "libcomm/base/clock.h"
#include "libcomm/bootstrap/store/store_internal.h"

typedef struct passage {
  lcomm_store *store;
  uint8_t *all;
  size_t size; /* of a rank */
  int missing; /* children whose bytes are not here */
  uint8_t head[LCOMM_STORE_HEADER_SIZE];
  size_t sent;   /* to the parent */
  bool passed;   /* all of it */
  bool promised; /* rank 0 has all parts */
  bool over;     /* the whole is here */
  lcomm_store_inbox from_parent;
  double until_s;
} passage;

static bool has_link(const lcomm_store *store) {
  return store->branch.parent > 0;
}

/* Rank 0 is heard no more: what is still to come comes from the parent. */
static bool is_alone(const lcomm_store *store) {
  return store->done || store->doomed;
}

/* Rank 0 finds out whether the neighbour has gone, or only the connection. */
static void accuse(lcomm_store *store, int neighbour, lcomm_store_charge charge) {
  uint8_t bytes[LCOMM_STORE_HEADER_SIZE + LCOMM_STORE_NOTE_SIZE];
  if (store->accused || is_alone(store)) {
    return;
  }
  store->accused = true;
  lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_ACCUSE, LCOMM_STORE_NOTE_SIZE}, bytes);
  lcomm_store_pack_accusation((lcomm_store_accusation){(uint32_t)neighbour, charge},
                              bytes + LCOMM_STORE_HEADER_SIZE);
  lcomm_store_say_bytes(store->fd, bytes, sizeof(bytes));
}

static void enter(passage *p) {
  uint8_t bytes[LCOMM_STORE_HEADER_SIZE + LCOMM_STORE_NOTE_SIZE];
  lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_ENTER, LCOMM_STORE_NOTE_SIZE}, bytes);
  lcomm_le_put(bytes + LCOMM_STORE_HEADER_SIZE, p->size, LCOMM_STORE_NOTE_SIZE);
  lcomm_store_say_bytes(p->store->fd, bytes, sizeof(bytes));
}

/* ------------------------------------------------------------ the children */

static void hear_child(passage *p, int child) {
  lcomm_store *store = p->store;
  lcomm_store_peer *peer = &store->peers[child];
  int below = lcomm_store_branch_below(&store->branch, child);
  lcomm_store_room room = {.data = p->all + (size_t)child * p->size,
                           .data_size = (size_t)below * p->size,
                           .takes_data = true};
  lcomm_store_heard heard = lcomm_store_hear(peer->fd, &peer->inbox, &room);
  if (heard == LCOMM_STORE_HEARD_FRAME && peer->inbox.frame.kind == LCOMM_STORE_DATA) {
    peer->passed = true;
    p->missing--;
  } else if (heard != LCOMM_STORE_HEARD_NOTHING) {
    accuse(store, child, heard == LCOMM_STORE_HEARD_END ? LCOMM_STORE_LOST : LCOMM_STORE_STRANGE);
    lcomm_store_lose(peer);
  }
}

static void begin_children(passage *p) {
  lcomm_store *store = p->store;
  for (int i = 0; i < store->branch.child_count; i++) {
    lcomm_store_peer *peer = &store->peers[store->branch.child[i]];
    peer->passed = false;
    p->missing++;
    if (peer->fd < 0) {
      accuse(store, store->branch.child[i], LCOMM_STORE_LOST);
    }
  }
}

/* -------------------------------------------------------------- the parent */

static void lose_parent(passage *p, lcomm_store_charge charge) {
  accuse(p->store, p->store->branch.parent, charge);
  close(p->store->parent.fd);
  p->store->parent.fd = -1;
}

/* Does this rank have something for its parent? */
static bool speaks(const passage *p) {
  return p->missing == 0 && !p->passed;
}

static void give_to_parent(passage *p) {
  lcomm_store *store = p->store;
  size_t size = (size_t)(store->branch.end - store->rank) * p->size;
  int fd = has_link(store) ? store->parent.fd : store->fd;
  lcomm_stream stream = lcomm_socket_write_parts(
      fd, p->head, sizeof(p->head), p->all + (size_t)store->rank * p->size, size, &p->sent);
  p->passed = p->sent == sizeof(p->head) + size;
  if (stream == LCOMM_STREAM_GONE && has_link(store)) {
    lose_parent(p, LCOMM_STORE_LOST);
  } else if (stream == LCOMM_STREAM_GONE) {
    p->passed = true; /* why it is gone may still be there to be read */
  } else if (p->passed && has_link(store)) {
    lcomm_store_say(store->fd, LCOMM_STORE_PASSED);
  }
}

static void hear_parent(passage *p) {
  lcomm_store *store = p->store;
  lcomm_store_room room = {
      .data = p->all, .data_size = (size_t)store->size * p->size, .takes_data = p->passed};
  size_t before = p->from_parent.received;
  lcomm_store_heard heard = lcomm_store_hear(store->parent.fd, &p->from_parent, &room);
  if (heard == LCOMM_STORE_HEARD_FRAME && p->from_parent.frame.kind == LCOMM_STORE_DATA) {
    p->over = true;
  } else if (heard == LCOMM_STORE_HEARD_NOTHING) {
    p->until_s = p->from_parent.received > before ? lcomm_clock_s() + store->timeout_s : p->until_s;
  } else {
    lose_parent(p, heard == LCOMM_STORE_HEARD_END ? LCOMM_STORE_LOST : LCOMM_STORE_STRANGE);
  }
}

/* ------------------------------------------------------------------ rank 0 */

static lcomm_status take_frame(passage *p) {
  lcomm_store *store = p->store;
  switch (store->from_root.frame.kind) {
  case LCOMM_STORE_WAIT:
    return LCOMM_OK;
  case LCOMM_STORE_WHOLE:
    p->promised = has_link(store) && p->passed;
    return p->promised ? LCOMM_OK : lcomm_store_fail_strange(store);
  case LCOMM_STORE_FAILED:
    store->doomed = p->promised;
    return store->doomed ? LCOMM_OK
                         : lcomm_store_fail_reason(store, store->from_root.frame, store->reason);
  case LCOMM_STORE_DATA:
    p->over = true;
    return LCOMM_OK;
  case LCOMM_STORE_DONE:
    store->done = p->promised;
    return store->done ? LCOMM_OK : lcomm_store_fail_strange(store);
  default:
    return lcomm_store_fail_strange(store);
  }
}

static lcomm_status hear_root(passage *p) {
  lcomm_store *store = p->store;
  lcomm_store_room room = {.data = p->all,
                           .data_size = (size_t)store->size * p->size,
                           .takes_data = !has_link(store) && p->passed,
                           .other = store->reason,
                           .other_size = sizeof(store->reason)};
  lcomm_store_heard heard = LCOMM_STORE_HEARD_FRAME;
  size_t before = store->from_root.received;
  while (!p->over && !is_alone(store) && heard == LCOMM_STORE_HEARD_FRAME) {
    heard = lcomm_store_hear(store->fd, &store->from_root, &room);
    if (heard == LCOMM_STORE_HEARD_FRAME || store->from_root.received > before) {
      p->until_s = lcomm_clock_s() + store->timeout_s;
    }
    if (heard == LCOMM_STORE_HEARD_FRAME) {
      LCOMM_TRY(take_frame(p));
    }
  }
  return heard == LCOMM_STORE_HEARD_END       ? lcomm_store_fail_gone(store)
         : heard == LCOMM_STORE_HEARD_STRANGE ? lcomm_store_fail_strange(store)
                                              : LCOMM_OK;
}

/* Rank 0 has given all out and left; what is missing is with the parent. */
static lcomm_status fail_parent(lcomm_store *store, lcomm_status status, const char *what) {
  return lcomm_store_fail(store, status,
                          "rank %d %s while the ranks were getting to know each other",
                          store->branch.parent, what);
}

static lcomm_status evaluate(passage *p) {
  lcomm_store *store = p->store;
  if (p->over) {
    return LCOMM_OK;
  }
  if (store->doomed && (store->parent.fd < 0 || lcomm_clock_s() >= p->until_s)) {
    return lcomm_store_fail_reason(store, store->from_root.frame, store->reason);
  }
  if (store->done && store->parent.fd < 0) {
    return fail_parent(store, LCOMM_ERR_TRANSPORT, "has gone");
  }
  if (lcomm_clock_s() < p->until_s) {
    return LCOMM_OK;
  }
  return store->done ? fail_parent(store, LCOMM_ERR_TIMEOUT, "has passed nothing on in time")
                     : lcomm_store_fail_silent(store);
}

/* ----------------------------------------------------------------- a round */

static short events_of(const passage *p, bool way_up) {
  return (short)(way_up && speaks(p) ? POLLIN | POLLOUT : POLLIN);
}

static lcomm_status take_round(passage *p) {
  enum { ROOT, PARENT, CHILDREN };
  lcomm_store *store = p->store;
  struct pollfd set[CHILDREN + LCOMM_STORE_FAN_OUT_MAX];
  int children = store->branch.child_count;
  set[ROOT] = (struct pollfd){.fd = is_alone(store) ? -1 : store->fd,
                              .events = events_of(p, !has_link(store))};
  set[PARENT] = (struct pollfd){.fd = store->parent.fd, .events = events_of(p, true)};
  for (int i = 0; i < children; i++) {
    const lcomm_store_peer *peer = &store->peers[store->branch.child[i]];
    set[CHILDREN + i] = (struct pollfd){.fd = peer->passed ? -1 : peer->fd, .events = POLLIN};
  }
  if (lcomm_socket_poll(set, CHILDREN + children, lcomm_poll_ms(p->until_s)) > 0) {
    if (set[ROOT].revents != 0) {
      LCOMM_TRY(hear_root(p));
    }
    for (int i = 0; i < children; i++) {
      if (set[CHILDREN + i].revents != 0) {
        hear_child(p, store->branch.child[i]);
      }
    }
    if (set[PARENT].revents != 0) {
      hear_parent(p);
    }
    if (speaks(p) && (!has_link(store) || store->parent.fd >= 0)) {
      give_to_parent(p);
    }
  }
  return evaluate(p);
}

lcomm_status lcomm_store_pass(lcomm_store *store, const void *send, void *receive, size_t size) {
  passage p = {
      .store = store, .all = receive, .size = size, .until_s = lcomm_clock_s() + store->timeout_s};
  lcomm_status status = store->doomed
                            ? lcomm_store_fail_reason(store, store->from_root.frame, store->reason)
                        : store->done ? lcomm_store_fail_gone(store)
                                      : LCOMM_OK;
  if (size > 0) {
    memmove(p.all + (size_t)store->rank * size, send, size);
  }
  lcomm_store_pack_frame(
      (lcomm_store_frame){LCOMM_STORE_DATA, (size_t)(store->branch.end - store->rank) * size},
      p.head);
  store->accused = false;
  if (status == LCOMM_OK) {
    enter(&p);
    begin_children(&p);
    if (has_link(store) && store->parent.fd < 0) {
      accuse(store, store->branch.parent, LCOMM_STORE_LOST);
    }
  }
  while (status == LCOMM_OK && !p.over) {
    status = take_round(&p);
  }
  if (status == LCOMM_OK && store->branch.child_count > 0) {
    lcomm_store_spread(store, receive, size * (size_t)store->size);
  } else if (status != LCOMM_OK) {
    close(store->fd);
    store->fd = -1;
  }
  return status;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Rank 0 of a tree. Bytes come from its children alone, but every rank says when it enters an
 * allgather and when it has passed its bytes on, so rank 0 knows who is late: the rank with the
 * highest number that has all from below and has passed nothing on. Who loses a neighbour says so;
 * the neighbour is waited for a moment, because its end explains the loss. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "codecs/little_endian.h"
#include "libcomm/base/clock.h"
#include "libcomm/bootstrap/store/store_internal.h"

static const double LINKED_S = 60; /* without news, before the star is called for */
static const double END_S = 2;     /* for the end of an accused rank to be seen */

/* The allgather that is going on. */
typedef struct gathering {
  lcomm_store *store;
  uint8_t *all;
  size_t size; /* of a rank */
  int accuser; /* -1: nobody is accused */
  lcomm_store_accusation accusation;
  double verdict_s;
} gathering;

static lcomm_status fail_wire(lcomm_store *store, int rank) {
  char who[96];
  return lcomm_store_fail(store, LCOMM_ERR_WIRE, "%s sends bytes that are no message",
                          lcomm_store_who(store, rank, who, sizeof(who)));
}

/* For those in store->polls. */
static lcomm_status wait_for_some(lcomm_store *store, double until_s, int *ready) {
  double wake_s = until_s < store->next_wait_s ? until_s : store->next_wait_s;
  *ready = lcomm_socket_poll(store->polls + 1, store->size - 1, lcomm_poll_ms(wake_s));
  if (*ready < 0) {
    return lcomm_store_fail(store, LCOMM_ERR_SYSTEM, "cannot wait for %d sockets: %s",
                            store->size - 1, strerror(errno));
  }
  return LCOMM_OK;
}

/* ---------------------------------------------------------------- linking */

/* Who was told of the star before it knew answers ALONE, so each rank answers once. */
static lcomm_status hear_answer(lcomm_store *store, int rank, bool *star) {
  lcomm_store_peer *peer = &store->peers[rank];
  lcomm_store_room room = {.other = peer->note};
  lcomm_store_heard heard = lcomm_store_hear(peer->fd, &peer->inbox, &room);
  lcomm_store_kind kind = peer->inbox.frame.kind;
  if (heard == LCOMM_STORE_HEARD_NOTHING) {
    return LCOMM_OK;
  }
  if (heard == LCOMM_STORE_HEARD_END) {
    return lcomm_store_miss(store, rank);
  }
  if (heard == LCOMM_STORE_HEARD_STRANGE || peer->answered ||
      (kind != LCOMM_STORE_LINKED && kind != LCOMM_STORE_ALONE)) {
    return fail_wire(store, rank);
  }
  peer->answered = true;
  *star = *star || kind == LCOMM_STORE_ALONE;
  return LCOMM_OK;
}

static void say_to_all(const lcomm_store *store, lcomm_store_kind kind) {
  for (int rank = 1; rank < store->size; rank++) {
    lcomm_store_say(store->peers[rank].fd, kind);
  }
}

/* Who has answered and was told of the star may be in an allgather already. */
static lcomm_status link_round(lcomm_store *store, double until_s, int *answers, bool *star) {
  int ready = 0;
  for (int rank = 1; rank < store->size; rank++) {
    const lcomm_store_peer *peer = &store->peers[rank];
    store->polls[rank] = (struct pollfd){.fd = peer->answered ? -1 : peer->fd, .events = POLLIN};
  }
  LCOMM_TRY(wait_for_some(store, until_s, &ready));
  *answers = 0;
  for (int rank = 1; rank < store->size; rank++) {
    if (ready > 0 && store->polls[rank].revents != 0) {
      LCOMM_TRY(hear_answer(store, rank, star));
    }
    *answers += store->peers[rank].answered;
  }
  lcomm_store_say_wait(store);
  return LCOMM_OK;
}

static int first_unanswered(const lcomm_store *store) {
  int rank = 1;
  while (rank + 1 < store->size && store->peers[rank].answered) {
    rank++;
  }
  return rank;
}

static lcomm_status link_all(lcomm_store *store) {
  bool star = false, called = false;
  int answers = 0;
  double moved_s = lcomm_clock_s();
  double patience_s = store->timeout_s / 2 < LINKED_S ? store->timeout_s / 2 : LINKED_S;
  while (answers < store->size - 1) {
    int before = answers;
    LCOMM_TRY(
        link_round(store, moved_s + (called ? store->timeout_s : patience_s), &answers, &star));
    double now_s = lcomm_clock_s();
    moved_s = answers > before ? now_s : moved_s;
    if (!called && (star || now_s >= moved_s + patience_s) && answers < store->size - 1) {
      star = called = true;
      say_to_all(store, LCOMM_STORE_STAR);
    } else if (called && now_s >= moved_s + store->timeout_s) {
      return lcomm_store_fail_late(store, first_unanswered(store));
    }
  }
  store->tree = !star;
  if (!called) {
    say_to_all(store, star ? LCOMM_STORE_STAR : LCOMM_STORE_TREE);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_store_root_link(lcomm_store *store) {
  return link_all(store) == LCOMM_OK ? LCOMM_OK : lcomm_store_fail_all(store);
}

/* -------------------------------------------------------------- gathering */

static bool are_neighbours(const lcomm_store *store, int rank, int other) {
  lcomm_store_branch branch;
  lcomm_store_branch_find(store->size, store->shape.fan_out, rank, &branch);
  return other > 0 && (branch.parent == other || lcomm_store_branch_below(&branch, other) > 0);
}

static lcomm_status take_accusation(gathering *g, int rank) {
  lcomm_store *store = g->store;
  lcomm_store_accusation it;
  if (lcomm_store_read_accusation(store->peers[rank].note, store->size, &it) != LCOMM_OK ||
      !are_neighbours(store, rank, (int)it.rank)) {
    return fail_wire(store, rank);
  }
  if (g->accuser < 0) {
    g->accuser = rank;
    g->accusation = it;
    g->verdict_s = lcomm_clock_s() + END_S;
  }
  return LCOMM_OK;
}

static lcomm_status take_entry(gathering *g, int rank) {
  char who[96];
  lcomm_store_peer *peer = &g->store->peers[rank];
  uint64_t size = lcomm_le_get(peer->note, LCOMM_STORE_NOTE_SIZE);
  if (peer->entered) {
    return fail_wire(g->store, rank);
  }
  if (size != g->size) {
    return lcomm_store_fail(g->store, LCOMM_ERR_MISMATCH,
                            "%s gives %llu bytes where rank 0 gives %zu; install the same libcomm "
                            "on all hosts",
                            lcomm_store_who(g->store, rank, who, sizeof(who)),
                            (unsigned long long)size, g->size);
  }
  peer->entered = true;
  return LCOMM_OK;
}

static lcomm_status take_frame(gathering *g, int rank, int below) {
  lcomm_store_peer *peer = &g->store->peers[rank];
  switch (peer->inbox.frame.kind) {
  case LCOMM_STORE_ENTER:
    return take_entry(g, rank);
  case LCOMM_STORE_ACCUSE:
    return take_accusation(g, rank);
  case LCOMM_STORE_DATA:
    peer->passed = true;
    return LCOMM_OK;
  case LCOMM_STORE_PASSED:
    if (below > 0 || !peer->entered || peer->passed) {
      return fail_wire(g->store, rank);
    }
    peer->passed = true;
    return LCOMM_OK;
  default:
    return fail_wire(g->store, rank);
  }
}

static lcomm_status receive(gathering *g, int rank) {
  lcomm_store *store = g->store;
  lcomm_store_peer *peer = &store->peers[rank];
  int below = lcomm_store_branch_below(&store->branch, rank);
  lcomm_store_heard heard = LCOMM_STORE_HEARD_FRAME;
  while (heard == LCOMM_STORE_HEARD_FRAME) {
    lcomm_store_room room = {.data = g->all + (size_t)rank * g->size,
                             .data_size = (size_t)below * g->size,
                             .takes_data = below > 0 && peer->entered && !peer->passed,
                             .other = peer->note,
                             .other_size = sizeof(peer->note)};
    heard = lcomm_store_hear(peer->fd, &peer->inbox, &room);
    if (heard == LCOMM_STORE_HEARD_FRAME) {
      LCOMM_TRY(take_frame(g, rank, below));
    }
  }
  return heard == LCOMM_STORE_HEARD_END       ? lcomm_store_miss(store, rank)
         : heard == LCOMM_STORE_HEARD_STRANGE ? fail_wire(store, rank)
                                              : LCOMM_OK;
}

/* The end of the accused is heard by itself; so is that it entered with another size. */
static lcomm_status evaluate(const gathering *g) {
  char who[96], other[96];
  lcomm_store *store = g->store;
  if (g->accuser < 0) {
    return LCOMM_OK;
  }
  int accused = (int)g->accusation.rank;
  bool strange = g->accusation.charge == LCOMM_STORE_STRANGE;
  if (lcomm_clock_s() < g->verdict_s && !(strange && store->peers[accused].entered)) {
    return LCOMM_OK;
  }
  lcomm_store_who(store, accused, other, sizeof(other));
  return lcomm_store_fail(store, strange ? LCOMM_ERR_WIRE : LCOMM_ERR_TRANSPORT,
                          strange ? "%s got bytes from %s that are no message; install the same "
                                    "libcomm on all hosts"
                                  : "%s has lost its connection with %s while the ranks were "
                                    "getting to know each other; check the network",
                          lcomm_store_who(store, g->accuser, who, sizeof(who)), other);
}

/* Children have higher numbers than their parents, so all below this one have passed. */
static int find_late(const lcomm_store *store) {
  int rank = 1;
  while (rank < store->size && store->peers[rank].entered) {
    rank++;
  }
  if (rank == store->size) {
    do {
      rank--;
    } while (rank > 1 && store->peers[rank].passed);
  }
  return rank;
}

static lcomm_status gather_round(gathering *g, double until_s, int *left, bool *moved) {
  lcomm_store *store = g->store;
  int ready = 0;
  if (g->accuser >= 0 && g->verdict_s < until_s) {
    until_s = g->verdict_s;
  }
  for (int rank = 1; rank < store->size; rank++) {
    store->polls[rank] = (struct pollfd){.fd = store->peers[rank].fd, .events = POLLIN};
  }
  LCOMM_TRY(wait_for_some(store, until_s, &ready));
  *left = 0;
  for (int rank = 1; rank < store->size; rank++) {
    if (ready > 0 && store->polls[rank].revents != 0) {
      LCOMM_TRY(receive(g, rank));
      *moved = true;
    }
    *left += !store->peers[rank].passed;
  }
  return evaluate(g);
}

void lcomm_store_root_promise(const lcomm_store *store) {
  for (int rank = 1; rank < store->size; rank++) {
    if (store->peers[rank].fd >= 0 && lcomm_store_branch_below(&store->branch, rank) == 0) {
      lcomm_store_say(store->peers[rank].fd, LCOMM_STORE_WHOLE);
    }
  }
}

lcomm_status lcomm_store_root_gather(lcomm_store *store, uint8_t *all, size_t size) {
  gathering g = {.store = store, .all = all, .size = size, .accuser = -1};
  double until_s = lcomm_clock_s() + store->timeout_s;
  int left = 1;
  for (int rank = 1; rank < store->size; rank++) {
    store->peers[rank].entered = store->peers[rank].passed = false;
    if (store->peers[rank].fd < 0) {
      return lcomm_store_miss(store, rank); /* it went after the last time */
    }
  }
  while (left > 0) {
    bool moved = false;
    LCOMM_TRY(gather_round(&g, until_s, &left, &moved));
    until_s = moved ? lcomm_clock_s() + store->timeout_s : until_s;
    if (left > 0 && lcomm_clock_s() >= until_s) {
      return lcomm_store_fail_late(store, find_late(store));
    }
    lcomm_store_say_wait(store);
  }
  return LCOMM_OK;
}

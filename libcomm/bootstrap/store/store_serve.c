/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Rank 0 after the meeting: allgathers as a star. What a rank says is taken
 * from all at once, then all of it is told to all at once, so a slow rank
 * holds up nobody but itself. In a tree a parent tells its children in the same way. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/base/clock.h"
#include "libcomm/bootstrap/store/store_internal.h"

static const double WAIT_S = 2; /* between signs of life to those who wait */
static const double LEAVE_S = 1;

bool lcomm_store_say_bytes(int fd, const uint8_t *bytes, size_t size) {
  size_t done = 0;
  lcomm_socket_write(fd, bytes, size, &done);
  return done == size;
}

bool lcomm_store_say(int fd, lcomm_store_kind kind) {
  uint8_t bytes[LCOMM_STORE_HEADER_SIZE];
  lcomm_store_pack_frame((lcomm_store_frame){kind, 0}, bytes);
  return lcomm_store_say_bytes(fd, bytes, sizeof(bytes));
}

void lcomm_store_say_reason(int fd, lcomm_store_kind kind, lcomm_status status, const char *text) {
  uint8_t bytes[LCOMM_STORE_HEADER_SIZE + LCOMM_STORE_REASON_MAX];
  (void)lcomm_store_say_bytes(fd, bytes, lcomm_store_pack_reason(kind, status, text, bytes));
}

void lcomm_store_say_wait(lcomm_store *store) {
  double now_s = lcomm_clock_s();
  if (now_s < store->next_wait_s) {
    return;
  }
  store->next_wait_s = now_s + (store->timeout_s / 4 < WAIT_S ? store->timeout_s / 4 : WAIT_S);
  for (int rank = 1; rank < store->size; rank++) {
    if (store->peers[rank].fd >= 0) {
      lcomm_store_say(store->peers[rank].fd, LCOMM_STORE_WAIT);
    }
  }
}

lcomm_status lcomm_store_fail_all(lcomm_store *store) {
  int count = 0;
  for (int rank = 1; rank < store->size; rank++) {
    lcomm_store_peer *peer = &store->peers[rank];
    if (peer->fd >= 0) {
      lcomm_store_say_reason(peer->fd, LCOMM_STORE_FAILED, store->status, store->sentence);
      store->polls[count++].fd = peer->fd;
      peer->fd = -1;
    }
  }
  lcomm_socket_part(store->polls, count, LEAVE_S);
  return store->status;
}

void lcomm_store_lose(lcomm_store_peer *peer) {
  close(peer->fd);
  peer->fd = -1;
  peer->was_here = true;
}

/* ------------------------------------------------------------- gathering */

lcomm_status lcomm_store_miss(lcomm_store *store, int rank) {
  char who[96];
  return lcomm_store_fail(store, LCOMM_ERR_TRANSPORT,
                          "%s has gone while the ranks were getting to know each other; its own "
                          "output may say why",
                          lcomm_store_who(store, rank, who, sizeof(who)));
}

static lcomm_status check_header(lcomm_store *store, int rank, size_t size) {
  char who[96];
  lcomm_store_frame frame;
  if (lcomm_store_read_frame(store->peers[rank].inbox.header, &frame) != LCOMM_OK ||
      frame.kind != LCOMM_STORE_DATA) {
    return lcomm_store_fail(store, LCOMM_ERR_WIRE, "%s sends bytes that are no message",
                            lcomm_store_who(store, rank, who, sizeof(who)));
  }
  if (frame.size != size) {
    return lcomm_store_fail(store, LCOMM_ERR_MISMATCH,
                            "%s gives %llu bytes where rank 0 gives %zu; install the same libcomm "
                            "on all hosts",
                            lcomm_store_who(store, rank, who, sizeof(who)),
                            (unsigned long long)frame.size, size);
  }
  return LCOMM_OK;
}

/* Bring in what a rank has sent; more than its part is a fault, too. */
static lcomm_status hear(lcomm_store *store, int rank, uint8_t *part, size_t size) {
  lcomm_store_peer *peer = &store->peers[rank];
  size_t whole = LCOMM_STORE_HEADER_SIZE + size;
  lcomm_stream stream = LCOMM_STREAM_MOVED;
  while (stream == LCOMM_STREAM_MOVED && peer->received < whole) {
    if (peer->received < LCOMM_STORE_HEADER_SIZE) {
      stream =
          lcomm_socket_read(peer->fd, peer->inbox.header, LCOMM_STORE_HEADER_SIZE, &peer->received);
      if (peer->received == LCOMM_STORE_HEADER_SIZE &&
          check_header(store, rank, size) != LCOMM_OK) {
        return store->status;
      }
    } else {
      size_t done = peer->received - LCOMM_STORE_HEADER_SIZE;
      stream = lcomm_socket_read(peer->fd, part, size, &done);
      peer->received = LCOMM_STORE_HEADER_SIZE + done;
    }
  }
  return stream == LCOMM_STREAM_GONE ? lcomm_store_miss(store, rank) : LCOMM_OK;
}

/* One that has given its part has to wait; if it is gone, so is the job. */
static lcomm_status await_silent(lcomm_store *store, int rank) {
  return lcomm_socket_is_silent(store->peers[rank].fd) ? LCOMM_OK : lcomm_store_miss(store, rank);
}

lcomm_status lcomm_store_fail_late(lcomm_store *store, int rank) {
  char who[96];
  return lcomm_store_fail(store, LCOMM_ERR_TIMEOUT,
                          "%s has sent nothing for %g s while the ranks were getting to know each "
                          "other; see what it does, or raise LCOMM_TIMEOUT_S",
                          lcomm_store_who(store, rank, who, sizeof(who)), store->timeout_s);
}

static lcomm_status say_who_is_late(lcomm_store *store, size_t whole) {
  int rank = 1;
  while (rank + 1 < store->size && store->peers[rank].received == whole) {
    rank++;
  }
  return lcomm_store_fail_late(store, rank);
}

/* One look at all sockets; *left: ranks whose part is not here yet. */
static lcomm_status gather_round(lcomm_store *store, uint8_t *all, size_t size, double until_s,
                                 int *left, bool *moved) {
  size_t whole = LCOMM_STORE_HEADER_SIZE + size;
  double wake_s = until_s < store->next_wait_s ? until_s : store->next_wait_s;
  lcomm_status status = LCOMM_OK;
  for (int rank = 1; rank < store->size; rank++) {
    store->polls[rank] = (struct pollfd){.fd = store->peers[rank].fd, .events = POLLIN};
  }
  int ready = lcomm_socket_poll(store->polls + 1, store->size - 1, lcomm_poll_ms(wake_s));
  if (ready < 0) {
    status = lcomm_store_fail(store, LCOMM_ERR_SYSTEM, "cannot wait for %d sockets: %s",
                              store->size - 1, strerror(errno));
  }
  *left = 0;
  for (int rank = 1; status == LCOMM_OK && rank < store->size; rank++) {
    size_t before = store->peers[rank].received;
    if (ready > 0 && store->polls[rank].revents != 0) {
      status = before == whole ? await_silent(store, rank)
                               : hear(store, rank, all + (size_t)rank * size, size);
    }
    *moved = *moved || store->peers[rank].received != before;
    *left += store->peers[rank].received != whole;
  }
  return status;
}

static lcomm_status gather(lcomm_store *store, uint8_t *all, size_t size) {
  double until_s = lcomm_clock_s() + store->timeout_s;
  int left = store->size - 1;
  for (int rank = 1; rank < store->size; rank++) {
    store->peers[rank].received = 0;
    if (store->peers[rank].fd < 0) {
      return lcomm_store_miss(store, rank); /* it went after the last time */
    }
  }
  while (left > 0) {
    bool moved = false;
    LCOMM_TRY(gather_round(store, all, size, until_s, &left, &moved));
    until_s = moved ? lcomm_clock_s() + store->timeout_s : until_s;
    if (left > 0 && lcomm_clock_s() >= until_s) {
      return say_who_is_late(store, LCOMM_STORE_HEADER_SIZE + size);
    }
    lcomm_store_say_wait(store);
  }
  return LCOMM_OK;
}

/* ------------------------------------------------------------- spreading */

/* One round of writing; returns the ranks that have not all of it. */
static int spread_round(lcomm_store *store, const uint8_t *header, const uint8_t *all, size_t size,
                        bool *moved) {
  int left = 0;
  for (int rank = 1; rank < store->size; rank++) {
    lcomm_store_peer *peer = &store->peers[rank];
    bool unfinished = peer->fd >= 0 && peer->sent < LCOMM_STORE_HEADER_SIZE + size;
    size_t before = peer->sent;
    if (unfinished && lcomm_socket_write_parts(peer->fd, header, LCOMM_STORE_HEADER_SIZE, all, size,
                                               &peer->sent) == LCOMM_STREAM_GONE) {
      lcomm_store_lose(peer);
    }
    unfinished = peer->fd >= 0 && peer->sent < LCOMM_STORE_HEADER_SIZE + size;
    store->polls[rank] = (struct pollfd){.fd = unfinished ? peer->fd : -1, .events = POLLOUT};
    *moved = *moved || peer->sent != before;
    left += unfinished;
  }
  return left;
}

/* In a tree only children are told. */
static bool is_served(const lcomm_store *store, int rank) {
  return !store->tree || lcomm_store_branch_below(&store->branch, rank) > 0;
}

/* Others may have the whole result already, so what goes wrong with one rank
 * here fails the next allgather, on all ranks alike. */
void lcomm_store_spread(lcomm_store *store, const uint8_t *all, size_t size) {
  uint8_t header[LCOMM_STORE_HEADER_SIZE];
  double until_s = lcomm_clock_s() + store->timeout_s;
  bool moved = false;
  lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_DATA, size}, header);
  for (int rank = 1; rank < store->size; rank++) {
    store->peers[rank].sent = is_served(store, rank) ? 0 : LCOMM_STORE_HEADER_SIZE + size;
  }
  while (spread_round(store, header, all, size, &moved) > 0) {
    until_s = moved ? lcomm_clock_s() + store->timeout_s : until_s;
    moved = false;
    if (lcomm_clock_s() >= until_s) {
      break;
    }
    poll(store->polls + 1, (nfds_t)(store->size - 1), lcomm_poll_ms(until_s));
  }
  for (int rank = 1; rank < store->size; rank++) {
    if (store->peers[rank].fd >= 0 && store->peers[rank].sent < LCOMM_STORE_HEADER_SIZE + size) {
      lcomm_store_lose(&store->peers[rank]);
    }
  }
}

lcomm_status lcomm_store_serve(lcomm_store *store, const void *send, void *receive, size_t size) {
  lcomm_status status =
      store->tree ? lcomm_store_root_gather(store, receive, size) : gather(store, receive, size);
  if (status != LCOMM_OK) {
    return lcomm_store_fail_all(store);
  }
  if (size > 0) {
    memmove(receive, send, size);
  }
  if (store->tree) {
    lcomm_store_root_promise(store);
  }
  lcomm_store_spread(store, receive, size * (size_t)store->size);
  return LCOMM_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The side of those who come to a meeting of survivors: connect to its host, say who we are, and
 * wait for the list. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/base/clock.h"
#include "libcomm/bootstrap/elastic/reunion.h"
#include "libcomm/bootstrap/store/store_internal.h"

static const double CONNECT_S = 5; /* to a host whose system answers */
enum { SEATS_MORE = 1 << 14 };     /* in a list than this rank knows of */
_Static_assert(4 * SEATS_MORE > LCOMM_STORE_REASON_MAX, "a reason has room where a list has");

typedef struct dialogue {
  lcomm_reunion *reunion;
  int fd, seat;
  double timeout_s, until_s; /* from when on the silence is too long */
  lcomm_store_inbox inbox;
  uint8_t *bytes;
  size_t room;
  lcomm_survivors *found;
  lcomm_status status;
} dialogue;

bool lcomm_reunion_has(const lcomm_reunion *reunion, int seat) {
  int i = 0;
  while (i < reunion->count && reunion->members[i] != seat) {
    i++;
  }
  int first = reunion->guest_count > 0 ? reunion->guests[0] : 0; /* they follow each other */
  return i < reunion->count || (seat >= first && seat < first + reunion->guest_count);
}

static bool is_newcomer(const dialogue *d) {
  return d->reunion->seat < 0;
}

static int connect_to(const lcomm_reunion *reunion, int seat, double limit_s) {
  lcomm_why why;
  return lcomm_socket_connect_to(&reunion->places[seat], -1, lcomm_clock_s() + limit_s, &why);
}

bool lcomm_reunion_is_dead(const lcomm_reunion *reunion, int seat) {
  static const double LIMIT_S = 0.2;
  int fd = connect_to(reunion, seat, LIMIT_S);
  if (fd < 0) {
    return errno == ECONNREFUSED;
  }
  close(fd);
  return false;
}

/* Seats are ranks from 1 on there: the host is rank 0 of the meeting, whatever its seat. Ranks may
 * know of other numbers of seats, so none is told. */
static lcomm_status greet(const dialogue *d) {
  uint8_t bytes[LCOMM_STORE_HANDSHAKE_SIZE];
  const lcomm_launcher_env *place = &d->reunion->place;
  lcomm_identity self;
  lcomm_identity_self(&self);
  lcomm_store_handshake hello = {.rank = is_newcomer(d) ? LCOMM_STORE_NEWCOMER
                                                        : (uint32_t)d->reunion->seat + 1,
                                 .process = d->reunion->process,
                                 .attempt = ++d->reunion->attempt};
  memcpy(hello.host, self.host, sizeof(hello.host));
  memcpy(hello.token, place->token, sizeof(hello.token));
  lcomm_store_pack_handshake(&hello, bytes);
  return lcomm_store_say_bytes(d->fd, bytes, sizeof(bytes)) ? LCOMM_OK : LCOMM_ERR_TRANSPORT;
}

static lcomm_reunion_answer end(dialogue *d) {
  lcomm_store_reason reason;
  if (lcomm_store_read_reason(d->bytes, (size_t)d->inbox.frame.size, &reason) != LCOMM_OK) {
    return LCOMM_REUNION_AGAIN;
  }
  bool other_job = reason.status == LCOMM_STORE_OTHER_JOB;
  lcomm_status status = other_job ? LCOMM_ERR_MISMATCH : reason.status;
  d->status = is_newcomer(d)
                  ? lcomm_error_thread(status, "refused by rank 0: %.900s", reason.text)
                  : lcomm_error_thread(
                        status, "the survivors, who meet at the rank that was number %d: %.900s",
                        d->seat, reason.text);
  return LCOMM_REUNION_ENDED;
}

/* Is this rank where the list says? A host that leaves us out of it is none. */
static bool is_mine(const dialogue *d, const lcomm_reunion_list *list) {
  bool survives = list->rank < list->survivors;
  if (is_newcomer(d)) {
    return !survives;
  }
  return survives && list->rank > 0 && list->seats[list->rank] == d->reunion->seat &&
         list->seats[0] == d->seat;
}

/* The list is here. */
static lcomm_reunion_answer take_list(dialogue *d) {
  lcomm_reunion_list *list = &d->found->list;
  if (lcomm_reunion_read_list(d->bytes, (size_t)d->inbox.frame.size, list) != LCOMM_OK ||
      !is_mine(d, list)) {
    return LCOMM_REUNION_AGAIN;
  }
  d->found->rank = list->rank;
  d->status = lcomm_store_star(list->rank, list->survivors + list->newcomers, &d->fd, d->timeout_s,
                               &d->found->store);
  if (d->status != LCOMM_OK) {
    return LCOMM_REUNION_ENDED;
  }
  d->fd = -1; /* the store's */
  return LCOMM_REUNION_LISTED;
}

/* One frame is here; *over: that was the answer. */
static lcomm_reunion_answer take_frame(dialogue *d, bool *over) {
  *over = true;
  switch (d->inbox.frame.kind) {
  case LCOMM_STORE_WAIT:
    *over = false;
    d->until_s = lcomm_clock_s() + d->timeout_s;
    return LCOMM_REUNION_AGAIN;
  case LCOMM_STORE_REFUSED:
  case LCOMM_STORE_FAILED:
    return end(d);
  case LCOMM_STORE_LIST:
    return take_list(d);
  default:
    return LCOMM_REUNION_AGAIN;
  }
}

/* Until the answer is here, the connection ends, or the host is silent for too long. */
static lcomm_reunion_answer listen_to_host(dialogue *d, double end_s) {
  lcomm_store_room room = {.other = d->bytes, .other_size = d->room};
  bool over = false;
  for (;;) {
    double limit_s = d->until_s < end_s ? d->until_s : end_s;
    struct pollfd one = {.fd = d->fd, .events = POLLIN};
    lcomm_socket_poll(&one, 1, lcomm_poll_ms(limit_s));
    lcomm_store_heard heard = lcomm_store_hear(d->fd, &d->inbox, &room);
    if (heard == LCOMM_STORE_HEARD_FRAME) {
      lcomm_reunion_answer answer = take_frame(d, &over);
      if (over) {
        return answer;
      }
    } else if (heard != LCOMM_STORE_HEARD_NOTHING) {
      return LCOMM_REUNION_AGAIN;
    } else if (lcomm_clock_s() >= limit_s) {
      return LCOMM_REUNION_SILENT;
    }
  }
}

static lcomm_reunion_answer converse(dialogue *d, double end_s) {
  d->room = LCOMM_REUNION_LIST_HEAD + 4 * ((size_t)d->reunion->seats + SEATS_MORE);
  d->bytes = malloc(d->room);
  d->until_s = lcomm_clock_s() + d->timeout_s;
  if (!d->bytes) {
    d->status = lcomm_error_thread(LCOMM_ERR_MEMORY, "lcomm_shrink: out of memory");
    return LCOMM_REUNION_ENDED;
  }
  lcomm_reunion_answer answer =
      greet(d) == LCOMM_OK ? listen_to_host(d, end_s) : LCOMM_REUNION_AGAIN;
  free(d->bytes);
  return answer;
}

lcomm_reunion_answer lcomm_reunion_call(lcomm_reunion *reunion, int seat, double timeout_s,
                                        double until_s, lcomm_survivors *found,
                                        lcomm_status *status) {
  dialogue d = {.reunion = reunion,
                .seat = seat,
                .timeout_s = timeout_s,
                .found = found,
                .fd = connect_to(reunion, seat, timeout_s < CONNECT_S ? timeout_s : CONNECT_S)};
  if (d.fd < 0) {
    return errno == ECONNREFUSED ? LCOMM_REUNION_DEAD : LCOMM_REUNION_SILENT;
  }
  lcomm_reunion_answer answer = converse(&d, until_s);
  *status = d.status;
  if (d.fd >= 0) {
    close(d.fd);
  }
  return answer;
}

lcomm_reunion_answer lcomm_reunion_knock(lcomm_reunion *reunion, int fd, double until_s,
                                         lcomm_survivors *found, lcomm_status *status) {
  dialogue d = {
      .reunion = reunion, .fd = fd, .timeout_s = until_s - lcomm_clock_s(), .found = found};
  lcomm_reunion_answer answer = converse(&d, until_s);
  *status = d.status;
  if (d.fd >= 0) {
    close(d.fd);
  }
  return answer;
}

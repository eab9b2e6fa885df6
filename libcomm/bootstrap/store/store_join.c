/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The side of all ranks but 0: find rank 0, say who we are, and exchange bytes
 * with it. Rank 0 says now and then that it is there, so a silence as long as
 * the time-out means that it is not. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/base/clock.h"
#include "libcomm/bootstrap/store/store_internal.h"

static const double GREETING_S = 10;    /* for rank 0's host to acknowledge a greeting */
static const double PATIENCE_S = 5;     /* with another job that meets at the same port */
static const double RETRY_MIN_S = 0.02; /* between attempts to reach rank 0, doubled ... */
static const double RETRY_MAX_S = 0.5;  /* ... up to this */

/* One message to rank 0, and what it says until the answer is complete. */
typedef struct dialogue {
  const uint8_t *head, *body; /* sent one after the other */
  size_t head_size, body_size, sent;
  lcomm_store_kind answer;
  uint8_t *receive;
  size_t size, received; /* of the frame in flight, header included */
  uint8_t header[LCOMM_STORE_HEADER_SIZE];
  uint8_t reason[LCOMM_STORE_REASON_MAX];
  lcomm_store_frame frame; /* once the header is here */
  bool over, heard;        /* the answer is complete; rank 0 has said something */
} dialogue;

/* How a dialogue can end without the answer. */
typedef enum outcome { GOES_ON, BROKEN, STRANGE, REFUSED, FAILED } outcome;

static void say(lcomm_store *store, dialogue *d) {
  if (lcomm_socket_write_parts(store->fd, d->head, d->head_size, d->body, d->body_size, &d->sent) ==
      LCOMM_STREAM_GONE) {
    d->sent = d->head_size + d->body_size; /* why it is gone may still be there to be read */
  }
}

static bool is_reason(const dialogue *d) {
  return d->frame.kind == LCOMM_STORE_REFUSED || d->frame.kind == LCOMM_STORE_FAILED;
}

/* The header is complete: is it what can come now? */
static outcome take_header(dialogue *d) {
  if (lcomm_store_read_frame(d->header, &d->frame) != LCOMM_OK) {
    return STRANGE;
  }
  bool expected = d->frame.kind == d->answer && d->frame.size == d->size;
  return expected || is_reason(d) || d->frame.kind == LCOMM_STORE_WAIT ? GOES_ON : STRANGE;
}

/* A whole frame is here. */
static outcome take_frame(dialogue *d) {
  d->received = 0;
  d->heard = true;
  if (is_reason(d)) {
    return d->frame.kind == LCOMM_STORE_REFUSED ? REFUSED : FAILED;
  }
  d->over = d->frame.kind == d->answer;
  return GOES_ON;
}

static outcome receive_answer(lcomm_store *store, dialogue *d) {
  const size_t head = LCOMM_STORE_HEADER_SIZE;
  outcome result = GOES_ON;
  while (!d->over && result == GOES_ON) {
    lcomm_stream stream = LCOMM_STREAM_MOVED;
    if (d->received < head) {
      stream = lcomm_socket_read(store->fd, d->header, head, &d->received);
      result = d->received == head ? take_header(d) : GOES_ON;
    } else {
      size_t done = d->received - head;
      uint8_t *place = is_reason(d) ? d->reason : d->receive;
      stream = lcomm_socket_read(store->fd, place, (size_t)d->frame.size, &done);
      d->received = head + done;
    }
    if (stream == LCOMM_STREAM_WAITS) {
      return GOES_ON;
    }
    if (stream == LCOMM_STREAM_GONE) {
      return BROKEN;
    }
    if (result == GOES_ON && d->received >= head && d->received == head + d->frame.size) {
      result = take_frame(d);
    }
  }
  return result;
}

/* Until the answer is complete, something ends it, rank 0 has not been heard
 * within limit_s, or nothing moves for the time-out; *late tells the last two. */
static outcome converse(lcomm_store *store, dialogue *d, double limit_s, bool *late) {
  outcome result = GOES_ON;
  double until_s = lcomm_clock_s() + limit_s;
  *late = false;
  while (!d->over && result == GOES_ON && !*late) {
    bool speaking = d->sent < d->head_size + d->body_size;
    struct pollfd one = {.fd = store->fd, .events = (short)(speaking ? POLLIN | POLLOUT : POLLIN)};
    if (poll(&one, 1, lcomm_poll_ms(until_s)) > 0) {
      if (speaking) {
        say(store, d);
      }
      result = receive_answer(store, d);
      until_s = d->heard ? lcomm_clock_s() + store->timeout_s : until_s;
    }
    *late = !d->over && lcomm_clock_s() >= until_s;
  }
  return result;
}

/* ------------------------------------------------------------- allgather */

lcomm_status lcomm_store_fail_reason(lcomm_store *store, lcomm_store_frame frame,
                                     const uint8_t *bytes) {
  lcomm_store_reason reason;
  if (lcomm_store_read_reason(bytes, (size_t)frame.size, &reason) != LCOMM_OK) {
    return lcomm_store_fail(store, LCOMM_ERR_WIRE, "rank 0 at %s ended it without a reason",
                            store->where);
  }
  if (frame.kind == LCOMM_STORE_REFUSED) {
    lcomm_status status =
        reason.status == LCOMM_STORE_OTHER_JOB ? LCOMM_ERR_MISMATCH : reason.status;
    return lcomm_store_fail(store, status, "refused at %s by rank 0: %.700s", store->where,
                            reason.text);
  }
  return lcomm_store_fail(store, reason.status, "stopped by %.900s", reason.text);
}

lcomm_status lcomm_store_fail_gone(lcomm_store *store) {
  return lcomm_store_fail(store, LCOMM_ERR_TRANSPORT,
                          "rank 0 at %s has gone while the ranks were getting to know each other; "
                          "its own output may say why",
                          store->where);
}

lcomm_status lcomm_store_fail_silent(lcomm_store *store) {
  return lcomm_store_fail(store, LCOMM_ERR_TIMEOUT,
                          "rank 0 at %s has said nothing for %g s; see what it does, or raise "
                          "LCOMM_TIMEOUT_S",
                          store->where, store->timeout_s);
}

lcomm_status lcomm_store_fail_strange(lcomm_store *store) {
  return lcomm_store_fail(store, LCOMM_ERR_WIRE,
                          "rank 0 at %s sends what was not asked for; install the same libcomm "
                          "on all hosts",
                          store->where);
}

/* What ends a dialogue with the rank 0 that let us in. */
static lcomm_status fail_with(lcomm_store *store, const dialogue *d, outcome result, bool late) {
  if (result == REFUSED || result == FAILED) {
    return lcomm_store_fail_reason(store, d->frame, d->reason);
  }
  if (late) {
    return lcomm_store_fail_silent(store);
  }
  return result == STRANGE ? lcomm_store_fail_strange(store) : lcomm_store_fail_gone(store);
}

lcomm_status lcomm_store_exchange(lcomm_store *store, const void *send, void *receive,
                                  size_t size) {
  uint8_t header[LCOMM_STORE_HEADER_SIZE];
  bool late = false;
  dialogue d = {.head = header,
                .head_size = sizeof(header),
                .body = send,
                .body_size = size,
                .answer = LCOMM_STORE_DATA,
                .heard = true,
                .receive = receive,
                .size = size * (size_t)store->size};
  lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_DATA, size}, header);
  outcome result = converse(store, &d, store->timeout_s, &late);
  if (d.over) {
    return LCOMM_OK;
  }
  fail_with(store, &d, result, late);
  close(store->fd);
  store->fd = -1;
  return store->status;
}

/* --------------------------------------------------------------- meeting */

void lcomm_store_greet(const lcomm_store *store, unsigned attempt, uint8_t *bytes) {
  lcomm_store_handshake handshake = {.rank = (uint32_t)store->rank,
                                     .world_size = (uint32_t)store->size,
                                     .process = store->process,
                                     .attempt = attempt,
                                     .port = (uint32_t)store->port};
  memcpy(handshake.host, store->host, sizeof(handshake.host));
  memcpy(handshake.token, store->launcher->token, sizeof(handshake.token));
  lcomm_store_pack_handshake(&handshake, bytes);
}

/* Another job may leave, and a greeting that was late be in time the next time. */
static bool refused_for_now(const dialogue *d, bool patient) {
  lcomm_store_reason reason;
  if (lcomm_store_read_reason(d->reason, (size_t)d->frame.size, &reason) != LCOMM_OK) {
    return false;
  }
  return reason.status == LCOMM_ERR_TIMEOUT || (reason.status == LCOMM_STORE_OTHER_JOB && patient);
}

/* What is known of the attempts so far. */
typedef struct attempts {
  double until_s, patience_s;
  unsigned count, silences; /* attempts; those at which nobody answered */
  bool was_in;              /* rank 0 has answered one, and then the connection broke */
  lcomm_why why;
} attempts;

/* How long who listens may be silent: a rank 0 that stands still goes on some time.
 * Where its name has several addresses, who listens at one of them may be
 * somebody else: all are tried, longer each time. */
static double silence_s(const attempts *past, unsigned addresses) {
  double left_s = past->until_s - lcomm_clock_s();
  double share_s = GREETING_S;
  for (unsigned i = 0; addresses > 1 && i < past->silences / addresses && share_s < left_s; i++) {
    share_s *= 2;
  }
  return left_s < 0 ? 0 : addresses == 1 || left_s < share_s ? left_s : share_s;
}

/* Can another attempt go better? A connection that breaks after rank 0 has answered
 * is made again once: if rank 0 lives, it answers soon. */
static bool may_try_again(const dialogue *d, outcome result, attempts *past) {
  double now_s = lcomm_clock_s();
  if (result == REFUSED) {
    return refused_for_now(d, now_s < past->patience_s);
  }
  if (!d->heard) {
    return true;
  }
  if (result != BROKEN || past->was_in) {
    return false;
  }
  past->was_in = true;
  past->until_s = past->until_s < now_s + PATIENCE_S ? past->until_s : now_s + PATIENCE_S;
  return true;
}

/* Connect, greet and wait for all to come. False: try again. Otherwise the
 * store's status tells how it went. */
static bool attempt(lcomm_store *store, attempts *past) {
  uint8_t handshake[LCOMM_STORE_HANDSHAKE_SIZE], place[LCOMM_STORE_PLACE_SIZE];
  bool late = false;
  unsigned addresses = 1;
  store->fd = lcomm_socket_connect(store->launcher->address, store->launcher->port, past->count++,
                                   past->until_s, &addresses, &past->why);
  if (store->fd < 0) {
    return false;
  }
  lcomm_socket_expect(store->fd, GREETING_S);
  lcomm_store_listen(store);
  lcomm_store_greet(store, past->count, handshake);
  dialogue d = {.head = handshake,
                .head_size = sizeof(handshake),
                .answer = LCOMM_STORE_WELCOME,
                .receive = place,
                .size = sizeof(place)};
  outcome result = converse(store, &d, silence_s(past, addresses), &late);
  if (d.over && lcomm_store_read_place(place, &store->parent.place) != LCOMM_OK) {
    d.over = false;
    result = STRANGE;
  }
  if (d.over) {
    lcomm_socket_expect(store->fd, 0);
    return true;
  }
  past->silences += late;
  bool again = may_try_again(&d, result, past);
  if (again) {
    lcomm_why_set(&past->why, LCOMM_ERR_TRANSPORT, "%s",
                  result == REFUSED  ? "another job meets there"
                  : late             ? "who listens there does not answer"
                  : result == BROKEN ? "who listens there hung up"
                                     : "who listens there is not libcomm");
  } else {
    fail_with(store, &d, result, late);
  }
  close(store->fd);
  store->fd = -1;
  return !again;
}

lcomm_status lcomm_store_join(lcomm_store *store) {
  double now_s = lcomm_clock_s(), pause_s = RETRY_MIN_S;
  double patience_s = store->timeout_s / 2 < PATIENCE_S ? store->timeout_s / 2 : PATIENCE_S;
  attempts past = {.until_s = now_s + store->timeout_s, .patience_s = now_s + patience_s};
  while (!attempt(store, &past)) {
    bool over = lcomm_clock_s() + pause_s >= past.until_s;
    if (over && past.was_in) {
      return lcomm_store_fail_gone(store);
    }
    if (over) {
      return lcomm_store_fail(store, LCOMM_ERR_TIMEOUT,
                              "cannot reach rank 0 at MASTER_ADDR %s within %g s: %s. See whether "
                              "rank 0 runs, whether the address and the port are its own and the "
                              "same on all ranks, and whether a firewall lets them through%s",
                              store->where, store->timeout_s, past.why.text,
                              lcomm_launcher_env_supposed());
    }
    poll(NULL, 0, (int)(pause_s * 1000));
    pause_s = pause_s * 2 < RETRY_MAX_S ? pause_s * 2 : RETRY_MAX_S;
  }
  return store->status;
}

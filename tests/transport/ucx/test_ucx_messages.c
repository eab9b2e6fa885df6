/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <poll.h>

#include "tests/support/unit_tests.h"
#include "tests/transport/ucx/test_ucx.h"

/* ---------------------------------------------------------------- messages */

static const size_t sizes[] = {0,     1,     64,    1151,   8184,    8185,          8192,   20553,
                               65535, 65536, 65537, 262144, 1 << 20, (1 << 22) + 1, 8 << 20};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* Every size to every peer with one tag, all at once, in both directions. */
static void messages_of_any_size_arrive_intact_and_in_order(forked *self) {
  party p = open_party(self);
  enum { PEERS = 2 };
  lcomm_transfer in[PEERS][SIZES], out[PEERS][SIZES];
  unsigned char *got[PEERS][SIZES], *sent[PEERS][SIZES];
  for (int k = 0; k < PEERS; k++) {
    int peer = (self->rank + 1 + k) % 3;
    for (int i = 0; i < SIZES; i++) {
      got[k][i] = calloc(1, sizes[i] + 1);
      sent[k][i] = pattern(sizes[i], (unsigned)(self->rank * 100 + i));
      receive_from(&p, peer, 7, got[k][i], sizes[i], &in[k][i]);
      send_to(&p, peer, 7, sent[k][i], sizes[i], &out[k][i]);
    }
  }
  for (int k = 0; k < PEERS; k++) {
    int peer = (self->rank + 1 + k) % 3;
    for (int i = 0; i < SIZES; i++) {
      unsigned char *expected = pattern(sizes[i], (unsigned)(peer * 100 + i));
      expect_end(&p, &in[k][i], sizes[i]);
      expect_end(&p, &out[k][i], sizes[i]);
      forked_require(self, memcmp(got[k][i], expected, sizes[i]) == 0,
                     "message %d from %d is not what was sent", i, peer);
      free(expected);
      free(got[k][i]);
      free(sent[k][i]);
    }
  }
  close_party(&p);
}

/* Long before anybody asks for them, and asked for from the last to the first. */
static void thousands_of_unexpected_messages_wait(forked *self) {
  enum { MANY = 5000, SIZE = 96, LARGE_EVERY = 250, LARGE = 70000 };
  static lcomm_transfer transfers[MANY];
  static unsigned char bytes[MANY][SIZE];
  unsigned char *large = pattern(LARGE, 5), *into = malloc(LARGE);
  party p = open_party(self);
  for (int i = 0; self->rank == 0 && i < MANY; i++) {
    bool is_large = i % LARGE_EVERY == 0;
    memset(bytes[i], i & 255, SIZE);
    send_to(&p, 1, (uint32_t)i, is_large ? large : bytes[i], is_large ? LARGE : SIZE,
            &transfers[i]);
  }
  for (int i = 0; self->rank == 0 && i < MANY; i++) {
    expect_end(&p, &transfers[i], i % LARGE_EVERY == 0 ? LARGE : SIZE);
  }
  if (self->rank == 1) {
    idle(&p, 0.3);
  }
  for (int i = MANY - 1; self->rank == 1 && i >= 0; i--) {
    size_t size = i % LARGE_EVERY == 0 ? LARGE : SIZE;
    receive_from(&p, 0, (uint32_t)i, into, LARGE, &transfers[0]);
    expect_end(&p, &transfers[0], size);
    forked_require(self, size == LARGE ? memcmp(into, large, LARGE) == 0 : into[0] == (i & 255),
                   "message %d is another", i);
  }
  free(large);
  free(into);
  close_party(&p);
}

/* --------------------------------------------------------- what goes wrong */

static void longer_message_is_an_error_and_stays_in_its_bounds(forked *self) {
  static const size_t too_long[] = {200, 30000, 1 << 20};
  party p = open_party(self);
  lcomm_transfer transfer;
  for (int i = 0; i < 3; i++) {
    unsigned char *bytes = pattern(too_long[i], 1);
    if (self->rank == 0) {
      send_to(&p, 1, 3, bytes, too_long[i], &transfer);
      expect_end(&p, &transfer, too_long[i]);
    } else {
      unsigned char into[128];
      memset(into, 0xee, sizeof(into));
      lcomm_status status = p.v->receive(p.t, 0, 3, into, 100, &transfer);
      status = status == LCOMM_OK ? finish(&p, &transfer, NULL) : status;
      expect_failure(&p, status, "rank 0 (host here)", "more bytes than expected");
      for (size_t k = 100; k < sizeof(into); k++) {
        forked_require(self, into[k] == 0xee, "byte %zu was written", k);
      }
    }
    free(bytes);
  }
  unsigned char last = 9;
  if (self->rank == 0) {
    send_to(&p, 1, 3, &last, 1, &transfer);
  } else {
    receive_from(&p, 0, 3, &last, 1, &transfer);
  }
  expect_end(&p, &transfer, 1);
  close_party(&p);
}

/* A receive that nothing has come for. */
static void cancelled_receive_leaves_the_message_to_the_next(forked *self) {
  enum { SIZE = 40000 };
  party p = open_party(self);
  lcomm_transfer first, second;
  unsigned char *sent = pattern(SIZE, 4), *cancelled = calloc(1, SIZE), *wanted = calloc(1, SIZE);
  if (self->rank == 1) {
    receive_from(&p, 0, 8, cancelled, SIZE, &first);
    p.v->cancel(p.t, &first);
  }
  forked_barrier(self);
  if (self->rank == 0) {
    send_to(&p, 1, 8, sent, SIZE, &second);
    expect_end(&p, &second, SIZE);
  } else {
    receive_from(&p, 0, 8, wanted, SIZE, &second);
    expect_end(&p, &second, SIZE);
    forked_require(self, memcmp(wanted, sent, SIZE) == 0, "the next receive got something else");
    forked_require(self, cancelled[0] == 0 && cancelled[SIZE - 1] == 0, "it was written");
  }
  free(sent);
  free(cancelled);
  free(wanted);
  close_party(&p);
}

/* A receive whose message has begun to come, from a rank that then stops. */
static void cancelled_receive_is_never_written_again(forked *self) {
  enum { SIZE = 64 << 20 };
  party p = open_party(self);
  lcomm_transfer transfer;
  unsigned char *bytes = calloc(1, SIZE), *copy = calloc(1, SIZE);
  memset(bytes, self->rank == 0 ? 1 : 0, SIZE);
  if (self->rank == 0) {
    send_to(&p, 1, 8, bytes, SIZE, &transfer);
    forked_barrier(self); /* the other side takes what the kernel has of it */
    idle(&p, 0.3);
    p.v->cancel(p.t, &transfer);
  } else {
    receive_from(&p, 0, 8, bytes, SIZE, &transfer);
    while (bytes[0] == 0) {
      p.v->progress(p.t);
    }
    double before_s = lcomm_clock_s();
    p.v->cancel(p.t, &transfer);
    double took_s = lcomm_clock_s() - before_s;
    forked_require(self, took_s < LIMIT_S / 4, "cancel took %.1f s", took_s);
    memcpy(copy, bytes, SIZE);
    forked_barrier(self);
    idle(&p, 0.3);
    forked_require(self, memcmp(copy, bytes, SIZE) == 0, "it was written after the cancel");
    bool whole = bytes[SIZE - 1] != 0; /* sockets may have held all of it */
    lcomm_status status = p.v->send(p.t, 0, 1, bytes, 1, &transfer);
    if (!whole || status != LCOMM_OK) {
      expect_failure(&p, status, "rank 0 (host here)", "no longer wanted");
      forked_require(self, p.v->wakeup->arm(p.t) == LCOMM_ARM_NEVER, "armed");
    }
  }
  p.v->close(p.t, false);
  free(bytes);
  free(copy);
}

/* --------------------------------------------------- control messages and sleeping */

static void hear_one(const party *p, unsigned char *message) {
  double deadline_s = lcomm_clock_s() + LIMIT_S;
  while (!p->v->control.receive(p->t, message)) {
    p->v->progress(p->t);
    forked_require(p->self, lcomm_clock_s() < deadline_s, "no control message came");
    sleep_for(2e-5);
  }
}

static void notices_pass(forked *self) {
  enum { EACH = 2, FLOOD = 500 };
  unsigned char message[LCOMM_CONTROL_SIZE], heard[FORKED_MAX] = {0};
  party p = open_party(self);
  for (int i = 0; i < EACH * self->size; i++) {
    int peer = i % self->size;
    memset(message, 10 * self->rank + i / self->size, sizeof(message));
    if (peer != self->rank) {
      p.v->control.send(p.t, peer, message);
      message[0] = message[1] = 255; /* told means copied */
    }
  }
  for (int i = 0; i < EACH * (self->size - 1); i++) {
    hear_one(&p, message);
    int from = message[0] / 10;
    forked_require(self, from < self->size && from != self->rank && message[0] % 10 < EACH,
                   "a control message begins with %d", message[0]);
    forked_require(self, message[LCOMM_CONTROL_SIZE - 1] == message[0],
                   "a control message is torn");
    heard[from]++;
  }
  for (int i = 0; i < self->size; i++) {
    forked_require(self, heard[i] == (i == self->rank ? 0 : EACH), "%d of %d", heard[i], i);
  }
  forked_barrier(self);
  for (int i = 0; i < FLOOD; i++) { /* nobody listens, nobody waits */
    p.v->control.send(p.t, (self->rank + 1) % self->size, message);
  }
  memset(message, 'e', sizeof(message));
  p.v->control.send_error(p.t, (self->rank + 1) % self->size, message);
  forked_barrier(self);
  do { /* behind all that was not dropped */
    hear_one(&p, message);
  } while (message[0] != 'e');
  idle(&p, 0.1);
  close_party(&p);
}

static void sleeper_wakes_for_a_message(forked *self) {
  party p = open_party(self);
  lcomm_transfer transfer;
  unsigned char bytes[300000] = {0};
  bool over = false;
  int woken = 0;
  size_t size = 0;
  if (self->rank == 0) {
    sleep_for(0.3);
    send_to(&p, 1, 2, bytes, sizeof(bytes), &transfer);
    expect_end(&p, &transfer, sizeof(bytes));
  }
  if (self->rank == 1) {
    receive_from(&p, 0, 2, bytes, sizeof(bytes), &transfer);
  }
  while (self->rank == 1 && !over) {
    p.v->progress(p.t);
    lcomm_status status = p.v->test(p.t, &transfer, &over, &size);
    forked_require(self, status == LCOMM_OK, "%s", p.t->why);
    int fd = over ? LCOMM_ARM_BUSY : p.v->wakeup->arm(p.t);
    forked_require(self, fd != LCOMM_ARM_NEVER, "cannot sleep");
    struct pollfd watched = {fd, POLLIN, 0};
    if (fd >= 0) {
      forked_require(self, poll(&watched, 1, 20000) == 1, "slept through the message");
      woken++;
    }
    p.v->wakeup->disarm(p.t);
  }
  forked_require(self, self->rank == 0 || woken > 0, "never slept");
  close_party(&p);
}

static const struct CMUnitTest tests[] = {
    UCX_TEST(messages_of_any_size_arrive_intact_and_in_order, 3),
    UCX_TEST(thousands_of_unexpected_messages_wait, 2),
    UCX_TEST(longer_message_is_an_error_and_stays_in_its_bounds, 2),
    UCX_TEST(cancelled_receive_leaves_the_message_to_the_next, 2),
    UCX_TEST(cancelled_receive_is_never_written_again, 2),
    UCX_TEST(notices_pass, 3),
    UCX_TEST(sleeper_wakes_for_a_message, 2),
};
RUN_TESTS(tests)

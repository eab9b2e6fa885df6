/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Peers that are killed, leave in the midst of a message, or close. */

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/unit_tests.h"
#include "tests/transport/shm/test_shm.h"

enum { TAG = 5 };

static void expect_end(const party *p, lcomm_transfer *transfer, const char *said) {
  for (lcomm_status status = LCOMM_OK; status == LCOMM_OK;) {
    bool over = false;
    p->v->progress(p->t);
    status = p->v->test(p->t, transfer, &over, NULL);
    forked_require(p->self, !over, "a message was over");
    struct pollfd bed = {.fd = status == LCOMM_OK ? p->v->wakeup->arm(p->t) : -1, .events = POLLIN};
    if (bed.fd >= 0) {
      forked_require(p->self, poll(&bed, 1, 20000) == 1, "the end did not wake");
    }
    p->v->wakeup->disarm(p->t);
  }
  forked_require(p->self, strstr(p->t->why, said) != NULL, "said: %s", p->t->why);
  bool over = false;
  forked_require(p->self, p->v->test(p->t, transfer, &over, NULL) != LCOMM_OK && !over,
                 "a failed message did not stay failed");
  p->v->cancel(p->t, transfer); /* harmless */
}

static void outlive_the_peer(forked *self, bool with_pidfd) {
  static unsigned char large[3 << 20], in[100];
  char said[64];
  lcomm_transfer sent, received, last;
  party p = open_party(self);
  if (self->rank == 1) {
    send_to(&p, 0, 3, "last words", 11, &sent);
    struct timespec moment = {0, 50000000};
    nanosleep(&moment, NULL);
    forked_die();
  }
  if (!with_pidfd) {
    lcomm_shm *t = lcomm_shm_of(p.t);
    close(t->of[1]->pidfd);
    t->of[1]->pidfd = -1;
    lcomm_shm_watch_by_time(t);
  }
  snprintf(said, sizeof(said), "process %ld (rank 1) has ended", (long)self->identities[1].pid);
  receive_from(&p, 1, TAG, in, sizeof(in), &received);
  send_to(&p, 1, TAG, large, sizeof(large), &sent);
  expect_end(&p, &received, said);
  expect_end(&p, &sent, said);
  receive_from(&p, 1, 3, in, sizeof(in), &last);
  finish(&p, &last);
  forked_require(self, strcmp((char *)in, "last words") == 0, "the last words are lost");
  forked_require(
      self, p.v->send(p.t, 1, TAG, "", 1, &sent) == LCOMM_ERR_TRANSPORT && strstr(p.t->why, said),
      "said: %s", p.t->why);
  receive_from(&p, 1, TAG, in, sizeof(in), &received);
  expect_end(&p, &received, said);
  struct pollfd bed = {.fd = p.v->wakeup->arm(p.t), .events = POLLIN};
  while (bed.fd == LCOMM_ARM_BUSY) {
    bed.fd = p.v->wakeup->arm(p.t);
  }
  forked_require(self, !with_pidfd || poll(&bed, 1, 20) == 0, "the dead keep awake");
  p.v->wakeup->disarm(p.t);
  p.v->close(p.t, false);
}

static void a_killed_peer_is_named(forked *self) {
  outlive_the_peer(self, true);
}

/* The process number is no longer anybody's once the parent has seen the end. */
static void a_killed_peer_is_named_without_pidfd(forked *self) {
  outlive_the_peer(self, false);
}

/* The ways that need the sender alive. */
static void a_message_whose_sender_goes_comes_to_an_end(forked *self) {
  enum { SIZE = 4 << 20, LAST = WAYS - 2 };
  static unsigned char in[SIZE], private[SIZE];
  for (int w = 4; w <= LAST; w++) {
    party p = open_party(self);
    lcomm_transfer transfer;
    lcomm_shm_set_ways(p.t, &all_ways[w].ways);
    if (self->rank == 1) {
      void *out = all_ways[w].shared ? p.v->memory_get(p.t, SIZE) : private;
      send_to(&p, 0, TAG, out, SIZE, &transfer);
      together(self);
      if (w == LAST) {
        forked_die();
      }
    } else {
      together(self);
      receive_from(&p, 1, TAG, in, SIZE, &transfer);
      await(&p, &transfer, NULL); /* ends, well or not */
    }
    p.v->close(p.t, false);
  }
}

/* A process whose number another one has now: its pidfd says that it has ended, and reading
 * goes on to succeed. */
static void a_lender_is_looked_at_once_behind_the_last_piece(forked *self) {
  enum { SIZE = 1 << 20, PIECES = 16 };
  static unsigned char bytes[SIZE];
  party p = open_party(self);
  lcomm_transfer transfer;
  lcomm_shm_ways only_reads = {.single_copy = true};
  lcomm_shm_set_ways(p.t, &only_reads);
  if (self->rank == 1) {
    send_to(&p, 0, TAG, bytes, SIZE, &transfer);
    together(self);
    p.v->close(p.t, false);
    return;
  }
  int ended[2];
  check(&p, p.v->zero_copy->receive(p.t, 1, TAG, SIZE, &transfer), "zero-copy receive");
  finish(&p, &transfer);
  forked_require(self, pipe(ended) == 0 && write(ended[1], "", 1) == 1, "no pipe");
  forked_require(self, dup2(ended[0], lcomm_shm_of(p.t)->of[1]->pidfd) >= 0, "no descriptor");
  for (size_t i = 0; i < PIECES; i++) {
    size_t size = SIZE / PIECES, at = i * size;
    lcomm_status status = p.v->zero_copy->get(p.t, &transfer, at, size, bytes + at);
    forked_require(self, (status != LCOMM_OK) == (i == PIECES - 1), "piece %zu: %s", i,
                   status == LCOMM_OK ? "got" : p.t->why);
  }
  forked_require(self, strstr(p.t->why, "has ended") != NULL, "said: %s", p.t->why);
  p.v->zero_copy->release(p.t, &transfer);
  together(self);
  p.v->close(p.t, false);
}

static void a_peer_that_closes_is_named_after_its_notice(forked *self) {
  party p = open_party(self);
  lcomm_transfer received;
  unsigned char in[8];
  if (self->rank == 1) {
    unsigned char message[LCOMM_CONTROL_SIZE] = "farewell";
    struct timespec moment = {0, 50000000};
    nanosleep(&moment, NULL);
    p.v->control.send(p.t, 0, message);
    p.v->close(p.t, false);
    forked_barrier(self);
    return;
  }
  unsigned char message[LCOMM_CONTROL_SIZE];
  receive_from(&p, 1, TAG, in, 8, &received);
  expect_end(&p, &received, "has closed its communicator");
  forked_require(self,
                 p.v->control.receive(p.t, message) && strcmp((char *)message, "farewell") == 0,
                 "the control message is lost");
  p.v->close(p.t, false);
  forked_barrier(self);
}

/* Short sends are over before they are in the ring; closing puts them there. */
static void what_was_sent_arrives_though_its_sender_closes(forked *self) {
  enum { MANY = 100, SIZE = 4000 };
  static unsigned char bytes[SIZE];
  lcomm_transfer transfer;
  party p = open_party(self);
  for (uint32_t i = 0; self->rank == 0 && i < MANY; i++) {
    fill(bytes, SIZE, i);
    send_to(&p, 1, TAG, bytes, SIZE, &transfer);
  }
  for (uint32_t i = 0; self->rank == 1 && i < MANY; i++) {
    receive_from(&p, 0, TAG, bytes, SIZE, &transfer);
    finish_asleep(&p, &transfer);
    require_bytes(&p, bytes, SIZE, i, "message");
  }
  p.v->close(p.t, true);
}

/* Nobody reads, and closing does not wait for ever. */
static void closing_does_not_wait_for_ever(forked *self) {
  static unsigned char bytes[4000];
  lcomm_why why;
  lcomm_transfer transfer;
  lcomm_transport *t = NULL;
  lcomm_transport_setup setup = setup_of(self, 0.1);
  forked_require(self, lcomm_transport_shm.open(&setup, &t, &why) == LCOMM_OK, "open: %s",
                 why.text);
  for (int i = 0; self->rank == 0 && i < 100; i++) {
    forked_require(self, t->table->send(t, 1, TAG, bytes, sizeof(bytes), &transfer) == LCOMM_OK,
                   "send: %s", t->why);
  }
  if (self->rank == 1) {
    together(self);
  }
  t->table->close(t, true);
  if (self->rank == 0) {
    together(self);
  }
}

/* What ends the reading of a message whose sender has cancelled it and closed its transport. */
typedef enum reading_end { ANSWERS, FAILS, CLOSES, DIES, READING_ENDS } reading_end;

static void end_reading(const party *p, lcomm_transfer *transfer, reading_end end) {
  if (end == ANSWERS) {
    p->v->zero_copy->release(p->t, transfer);
  } else if (end == FAILS) {
    p->v->stop_reading(p->t);
  } else if (end == CLOSES) {
    forked_require(p->self, p->v->close(p->t, false), "nothing was sent, and close leaves it");
  } else {
    forked_die();
  }
}

/* The peer looks into the message before, and after the sender has closed. */
static void read_slowly(const party *p, size_t size, reading_end end) {
  static unsigned char bytes[1 << 20];
  lcomm_transfer transfer;
  check(p, p->v->zero_copy->receive(p->t, 0, TAG, size, &transfer), "zero-copy receive");
  finish(p, &transfer);
  together(p->self);
  together(p->self); /* the sender has closed */
  check(p, p->v->zero_copy->get(p->t, &transfer, 0, size, bytes), "get");
  require_bytes(p, bytes, size, 3, "a message that is still read");
  end_reading(p, &transfer, end);
  together(p->self);
  if (end != CLOSES) {
    (void)p->v->close(p->t, false);
  }
}

static void wait_for_end(const party *p) {
  while (lcomm_shm_is_alive(lcomm_shm_of(p->t)->of[1])) {
    sched_yield();
  }
}

static void what_a_peer_reads_stays_until_it_has_ended(forked *self) {
  enum { SIZE = 100000 };
  for (int i = 0; i < 2 * READING_ENDS; i++) {
    const way *w = &all_ways[1 + i % 2]; /* a view, and a copy */
    reading_end end = (reading_end)(i / 2);
    party p = open_party(self);
    lcomm_shm_set_ways(p.t, &w->ways);
    if (end == DIES && i % 2 == 0) {
      together(self); /* a peer dies once */
      p.v->close(p.t, false);
      continue;
    }
    if (self->rank == 1) {
      read_slowly(&p, SIZE, end);
      continue;
    }
    lcomm_transfer transfer;
    unsigned char *bytes = message_get(&p, w, SIZE);
    fill(bytes, SIZE, 3);
    send_to(&p, 1, TAG, bytes, SIZE, &transfer);
    together(self);
    p.v->cancel(p.t, &transfer);
    forked_require(self, !p.v->close(p.t, false), "%s: close forgets the reader", w->name);
    forked_require(self, !p.v->release(p.t), "%s: release forgets the reader", w->name);
    together(self);
    if (end == DIES) {
      wait_for_end(&p);
    } else {
      together(self);
    }
    forked_require(self, p.v->release(p.t), "%s: it is kept after end %d", w->name, end);
    message_free(&p, w, bytes);
  }
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST_DYING(a_killed_peer_is_named, 2, 1),
    FORKED_TEST_DYING(a_killed_peer_is_named_without_pidfd, 2, 1),
    FORKED_TEST(a_lender_is_looked_at_once_behind_the_last_piece, 2),
    FORKED_TEST_DYING(a_message_whose_sender_goes_comes_to_an_end, 2, 1),
    FORKED_TEST(a_peer_that_closes_is_named_after_its_notice, 2),
    FORKED_TEST(what_was_sent_arrives_though_its_sender_closes, 2),
    FORKED_TEST(closing_does_not_wait_for_ever, 2),
    FORKED_TEST_DYING(what_a_peer_reads_stays_until_it_has_ended, 2, 1),
};
RUN_TESTS(tests)

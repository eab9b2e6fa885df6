/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sleeping and waking, messages read in place, notices, and peers that end. */

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "tests/transport/test_shm.h"

enum { TAG = 5 };

/* ------------------------------------------------------------- sleeping */

static void play_ping_pong(const party *p, const way *w, size_t size, int rounds) {
  unsigned char *out = message_get(p, w, size), *in = malloc(size + 1);
  lcomm_transfer sent, received;
  lcomm_shm_set_ways(p->t, &w->ways);
  fill(out, size, 1);
  for (int i = 0; i < rounds; i++) {
    receive_from(p, 1 - p->self->rank, TAG, in, size, &received);
    if (p->self->rank == 1) {
      finish_asleep(p, &received);
    }
    send_to(p, 1 - p->self->rank, TAG, out, size, &sent);
    if (p->self->rank == 0) {
      finish_asleep(p, &received);
    }
    finish_asleep(p, &sent);
  }
  require_bytes(p, in, size, 1, w->name);
  message_free(p, w, out);
  free(in);
}

static void sleep_each_time(forked *self) {
  party p = open_party(self);
  play_ping_pong(&p, &all_ways[0], 8, 20000);
  for (int w = 0; w < WAYS; w++) {
    play_ping_pong(&p, &all_ways[w], 20000, 1000);
    together_in_progress(&p);
  }
  close_party(&p);
}

static void no_wake_up_is_lost(void **state) {
  (void)state;
  forked_run(2, sleep_each_time);
}

/* A sleeper whose sends wait for room is woken when there is some. */
static void sleep_on_a_full_ring(forked *self) {
  enum { MANY = 1000, SIZE = 1000, LARGE = 5000 };
  static unsigned char bytes[LARGE];
  lcomm_transfer transfer;
  party p = open_party(self);
  for (uint32_t i = 0; i < MANY; i++) {
    if (self->rank == 0) {
      fill(bytes, SIZE, i);
      send_to(&p, 1, TAG, bytes, SIZE, &transfer);
    } else {
      receive_from(&p, 0, TAG, bytes, SIZE, &transfer);
      finish_asleep(&p, &transfer);
      require_bytes(&p, bytes, SIZE, i, "message");
    }
  }
  if (self->rank == 0) {
    send_to(&p, 1, TAG, bytes, LARGE, &transfer);
  } else {
    receive_from(&p, 0, TAG, bytes, LARGE, &transfer);
  }
  finish_asleep(&p, &transfer);
  close_party(&p);
}

static void a_sleeper_is_woken_when_there_is_room(void **state) {
  (void)state;
  forked_run(2, sleep_on_a_full_ring);
}

/* What comes between the tests and arm is not slept over, and not spoken of
 * for ever. */
static void arm_twice(forked *self) {
  party p = open_party(self);
  lcomm_transfer transfer;
  unsigned char in[8];
  if (self->rank == 0) {
    while (p.v->arm(p.t) == LCOMM_ARM_BUSY) {
      p.v->disarm(p.t);
    }
    p.v->disarm(p.t);
    together(self); /* the other one sends */
    together(self);
    forked_require(self, p.v->arm(p.t) == LCOMM_ARM_BUSY, "it would sleep");
    p.v->disarm(p.t);
    p.v->progress(p.t);
    forked_require(self, p.v->arm(p.t) == LCOMM_ARM_BUSY, "it would sleep before the tests");
    p.v->disarm(p.t);
    forked_require(self, p.v->arm(p.t) >= 0, "it does not sleep any more");
    p.v->disarm(p.t);
    receive_from(&p, 1, TAG, in, 8, &transfer);
    finish(&p, &transfer);
  } else {
    together(self);
    send_to(&p, 0, TAG, "1234567", 8, &transfer);
    together(self);
    finish(&p, &transfer);
  }
  close_party(&p);
}

static void what_has_come_keeps_awake_once(void **state) {
  (void)state;
  forked_run(2, arm_twice);
}

/* Everyone with everyone, many more than there are cores. */
static void crowd(forked *self) {
  static unsigned char in[FORKED_MAX][40000], out[FORKED_MAX][40000];
  static const size_t sizes[] = {8, 4000, 40000};
  party p = open_party(self);
  for (uint32_t round = 0; round < 12; round++) {
    lcomm_transfer sent[FORKED_MAX], received[FORKED_MAX];
    size_t size = sizes[round % 3];
    for (int peer = 0; peer < self->size; peer++) {
      if (peer != self->rank) {
        fill(out[peer], size, round + (uint32_t)self->rank);
        send_to(&p, peer, round, out[peer], size, &sent[peer]);
        receive_from(&p, peer, round, in[peer], size, &received[peer]);
      }
    }
    for (int peer = 0; peer < self->size; peer++) {
      if (peer != self->rank) {
        finish_asleep(&p, &received[peer]);
        require_bytes(&p, in[peer], size, round + (uint32_t)peer, "crowd");
        finish_asleep(&p, &sent[peer]);
      }
    }
  }
  together_in_progress(&p);
  close_party(&p);
}

static void more_processes_than_cores_get_along(void **state) {
  (void)state;
  forked_run(9, crowd);
}

/* -------------------------------------------------------- peek and drop */

static bool wait_peek(const party *p, uint32_t tag, const void **bytes, size_t *size) {
  for (double end_s = lcomm_clock_s() + LIMIT_S; lcomm_clock_s() < end_s; sched_yield()) {
    if (p->v->peek(p->t, 1 - p->self->rank, tag, bytes, size)) {
      return true;
    }
  }
  return false;
}

static void peek_at_many(forked *self) {
  static unsigned char out[LCOMM_SHM_INLINE];
  party p = open_party(self);
  for (uint32_t i = 0; i < 3000; i++) {
    size_t size = (i * 37) % (LCOMM_SHM_INLINE + 1);
    lcomm_transfer transfer;
    if (self->rank == 0) {
      fill(out, size, i);
      send_to(&p, 1, i, out, size, &transfer);
      finish(&p, &transfer);
      continue;
    }
    const void *bytes = NULL;
    size_t there = 0;
    forked_require(self, wait_peek(&p, i, &bytes, &there) && there == size, "message %u has %zu", i,
                   there);
    require_bytes(&p, bytes, size, i, "peek");
    if (i == 2999) {
      break;
    }
    p.v->drop(p.t, 0);
  }
  if (self->rank == 1) {
    lcomm_transfer last;
    p.v->progress(p.t); /* takes in what was not dropped */
    p.v->drop(p.t, 0);
    receive_from(&p, 0, 2999, out, sizeof(out), &last);
    finish(&p, &last);
    require_bytes(&p, out, 2999 * 37 % (LCOMM_SHM_INLINE + 1), 2999, "peeked before");
  }
  together_in_progress(&p);
  close_party(&p);
}

static void short_messages_are_read_in_place(void **state) {
  (void)state;
  forked_run(2, peek_at_many);
}

/* In the way of a peek: another tag, a long message, somebody who has asked,
 * an earlier message that was put aside. */
static void peek_in_vain(forked *self) {
  static unsigned char large[10000];
  party p = open_party(self);
  lcomm_transfer sent[5], received;
  const void *bytes = NULL;
  size_t size = 0;
  unsigned char in[16] = {0};
  if (self->rank == 0) {
    send_to(&p, 1, 1, "a", 2, &sent[0]);
    send_to(&p, 1, 2, "b", 2, &sent[1]);
    send_to(&p, 1, 2, large, sizeof(large), &sent[2]);
    together(self);
    together(self);
    send_to(&p, 1, 2, "c", 2, &sent[3]);
    send_to(&p, 1, 3, "d", 2, &sent[4]);
    together(self);
    for (int i = 0; i < 5; i++) {
      finish(&p, &sent[i]);
    }
    together_in_progress(&p);
    close_party(&p);
    return;
  }
  together(self);
  forked_require(self, !p.v->peek(p.t, 0, 2, &bytes, &size), "a later message was seen");
  forked_require(self, p.v->peek(p.t, 0, 1, &bytes, &size), "the first one was not seen");
  p.v->drop(p.t, 0);
  p.v->drop(p.t, 0); /* once is enough */
  p.v->progress(p.t);
  together(self);
  together(self);
  forked_require(self, !p.v->peek(p.t, 0, 2, &bytes, &size), "it overtook what was put aside");
  receive_from(&p, 0, 2, in, 16, &received);
  finish(&p, &received);
  forked_require(self, strcmp((char *)in, "b") == 0, "came: %s", (char *)in);
  receive_from(&p, 0, 2, large, sizeof(large), &received);
  finish(&p, &received);
  receive_from(&p, 0, 3, in, 16, &received);
  forked_require(self, !p.v->peek(p.t, 0, 3, &bytes, &size), "it was taken from who had asked");
  finish(&p, &received);
  receive_from(&p, 0, 2, in, 16, &received);
  finish(&p, &received);
  forked_require(self, strcmp((char *)in, "c") == 0, "came: %s", (char *)in);
  together_in_progress(&p);
  close_party(&p);
}

static void peeking_overtakes_nothing(void **state) {
  (void)state;
  forked_run(2, peek_in_vain);
}

/* --------------------------------------------------------------- notices */

static void tell_beside_the_queue(forked *self) {
  enum { MANY = 200 };
  static unsigned char out[4000], notice[LCOMM_NOTICE_SIZE];
  static lcomm_transfer sent[MANY];
  party p = open_party(self);
  if (self->rank == 0) {
    for (int i = 0; i < MANY; i++) {
      send_to(&p, 1, TAG, out, sizeof(out), &sent[i]); /* far more than fits */
    }
    for (uint32_t i = 0; i < 20; i++) {
      fill(notice, sizeof(notice), i);
      p.v->tell(p.t, 1, notice);
    }
    together(self);
    for (int i = 0; i < MANY; i++) {
      finish(&p, &sent[i]);
    }
  } else {
    int heard = 0;
    together(self);
    forked_require(self, !p.v->hear(p.t, notice), "heard before anything came");
    for (double end_s = lcomm_clock_s() + LIMIT_S; heard < 2 && lcomm_clock_s() < end_s;) {
      p.v->progress(p.t);
      if (p.v->hear(p.t, notice)) {
        require_bytes(&p, notice, sizeof(notice), (uint32_t)heard++, "notice");
      }
    }
    forked_require(self, heard == 2, "heard %d notices", heard);
    for (int i = 0; i < MANY; i++) {
      lcomm_transfer received;
      receive_from(&p, 0, TAG, out, sizeof(out), &received);
      finish(&p, &received);
    }
    while (p.v->hear(p.t, notice)) {
      heard++;
    }
    forked_require(self, heard <= 20, "heard %d notices", heard);
  }
  together_in_progress(&p);
  close_party(&p);
}

static void notices_pass_by_a_full_queue(void **state) {
  (void)state;
  forked_run(2, tell_beside_the_queue);
}

/* ------------------------------------------------------------------ ends */

static void expect_end(const party *p, lcomm_transfer *transfer, const char *said) {
  for (lcomm_status status = LCOMM_OK; status == LCOMM_OK;) {
    bool over = false;
    p->v->progress(p->t);
    status = p->v->test(p->t, transfer, &over, NULL);
    forked_require(p->self, !over, "a message was over");
    struct pollfd bed = {.fd = status == LCOMM_OK ? p->v->arm(p->t) : -1, .events = POLLIN};
    if (bed.fd >= 0) {
      forked_require(p->self, poll(&bed, 1, 20000) == 1, "the end did not wake");
    }
    p->v->disarm(p->t);
  }
  forked_require(p->self, strstr(p->v->why(p->t), said) != NULL, "said: %s", p->v->why(p->t));
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
  forked_require(self,
                 p.v->send(p.t, 1, TAG, "", 1, &sent) == LCOMM_ERR_TRANSPORT &&
                     strstr(p.v->why(p.t), said),
                 "said: %s", p.v->why(p.t));
  receive_from(&p, 1, TAG, in, sizeof(in), &received);
  expect_end(&p, &received, said);
  struct pollfd bed = {.fd = p.v->arm(p.t), .events = POLLIN};
  while (bed.fd == LCOMM_ARM_BUSY) {
    bed.fd = p.v->arm(p.t);
  }
  forked_require(self, !with_pidfd || poll(&bed, 1, 20) == 0, "the dead keep awake");
  p.v->disarm(p.t);
  p.v->close(p.t, false);
}

static void outlive_with_pidfd(forked *self) {
  outlive_the_peer(self, true);
}

/* The process number is no longer anybody's once the parent has seen the end. */
static void outlive_without_pidfd(forked *self) {
  outlive_the_peer(self, false);
}

static void a_killed_peer_is_named(void **state) {
  (void)state;
  forked_run_dying(2, 1, outlive_with_pidfd);
}

static void a_killed_peer_is_named_without_pidfd(void **state) {
  (void)state;
  forked_run_dying(2, 1, outlive_without_pidfd);
}

/* The ways that need the sender alive. */
static void leave_in_the_midst(forked *self) {
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

static void a_message_whose_sender_goes_comes_to_an_end(void **state) {
  (void)state;
  forked_run_dying(2, 1, leave_in_the_midst);
}

static void close_early(forked *self) {
  party p = open_party(self);
  lcomm_transfer received;
  unsigned char in[8];
  if (self->rank == 1) {
    unsigned char notice[LCOMM_NOTICE_SIZE] = "farewell";
    struct timespec moment = {0, 50000000};
    nanosleep(&moment, NULL);
    p.v->tell(p.t, 0, notice);
    p.v->close(p.t, false);
    forked_barrier(self);
    return;
  }
  unsigned char notice[LCOMM_NOTICE_SIZE];
  receive_from(&p, 1, TAG, in, 8, &received);
  expect_end(&p, &received, "has closed its communicator");
  forked_require(self, p.v->hear(p.t, notice) && strcmp((char *)notice, "farewell") == 0,
                 "the notice is lost");
  p.v->close(p.t, false);
  forked_barrier(self);
}

static void a_peer_that_closes_is_named_after_its_notice(void **state) {
  (void)state;
  forked_run(2, close_early);
}

/* Short sends are over before they are in the ring; closing puts them there. */
static void close_at_once(forked *self) {
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

static void what_was_sent_arrives_though_its_sender_closes(void **state) {
  (void)state;
  forked_run(2, close_at_once);
}

/* Nobody reads, and closing does not wait for ever. */
static void close_without_reader(forked *self) {
  static unsigned char bytes[4000];
  char why[LCOMM_TRANSPORT_WHY_MAX];
  lcomm_transfer transfer;
  lcomm_transport *t = NULL;
  lcomm_transport_setup setup = {self->rank, 2, self->identities, &self->boot, NULL, 0.1};
  forked_require(self, lcomm_transport_shm.open(&setup, &t, why) == LCOMM_OK, "open: %s", why);
  for (int i = 0; self->rank == 0 && i < 100; i++) {
    forked_require(self, t->table->send(t, 1, TAG, bytes, sizeof(bytes), &transfer) == LCOMM_OK,
                   "send: %s", t->table->why(t));
  }
  if (self->rank == 1) {
    together(self);
  }
  t->table->close(t, true);
  if (self->rank == 0) {
    together(self);
  }
}

static void closing_does_not_wait_for_ever(void **state) {
  (void)state;
  forked_run(2, close_without_reader);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_wake_up_is_lost),
      cmocka_unit_test(a_sleeper_is_woken_when_there_is_room),
      cmocka_unit_test(what_has_come_keeps_awake_once),
      cmocka_unit_test(more_processes_than_cores_get_along),
      cmocka_unit_test(short_messages_are_read_in_place),
      cmocka_unit_test(peeking_overtakes_nothing),
      cmocka_unit_test(notices_pass_by_a_full_queue),
      cmocka_unit_test(a_killed_peer_is_named),
      cmocka_unit_test(a_killed_peer_is_named_without_pidfd),
      cmocka_unit_test(a_message_whose_sender_goes_comes_to_an_end),
      cmocka_unit_test(a_peer_that_closes_is_named_after_its_notice),
      cmocka_unit_test(what_was_sent_arrives_though_its_sender_closes),
      cmocka_unit_test(closing_does_not_wait_for_ever),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sleeping and waking. */

#include "tests/support/unit_tests.h"
#include "tests/transport/shm/test_shm.h"

enum { TAG = 5 };

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

static void no_wake_up_is_lost(forked *self) {
  party p = open_party(self);
  play_ping_pong(&p, &all_ways[0], 8, 20000);
  for (int w = 0; w < WAYS; w++) {
    play_ping_pong(&p, &all_ways[w], 20000, 1000);
    together_in_progress(&p);
  }
  close_party(&p);
}

/* A sleeper whose sends wait for room is woken when there is some. */
static void a_sleeper_is_woken_when_there_is_room(forked *self) {
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

/* What comes between the tests and arm is not slept over, and not spoken of
 * for ever. */
static void what_has_come_keeps_awake_once(forked *self) {
  party p = open_party(self);
  lcomm_transfer transfer;
  unsigned char in[8];
  if (self->rank == 0) {
    while (p.v->wakeup->arm(p.t) == LCOMM_ARM_BUSY) {
      p.v->wakeup->disarm(p.t);
    }
    p.v->wakeup->disarm(p.t);
    together(self); /* the other one sends */
    together(self);
    forked_require(self, p.v->wakeup->arm(p.t) == LCOMM_ARM_BUSY, "it would sleep");
    p.v->wakeup->disarm(p.t);
    p.v->progress(p.t);
    forked_require(self, p.v->wakeup->arm(p.t) == LCOMM_ARM_BUSY,
                   "it would sleep before the tests");
    p.v->wakeup->disarm(p.t);
    forked_require(self, p.v->wakeup->arm(p.t) >= 0, "it does not sleep any more");
    p.v->wakeup->disarm(p.t);
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

/* Everyone with everyone, many more than there are cores. */
static void more_processes_than_cores_get_along(forked *self) {
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

static const struct CMUnitTest tests[] = {
    FORKED_TEST(no_wake_up_is_lost, 2),
    FORKED_TEST(a_sleeper_is_woken_when_there_is_room, 2),
    FORKED_TEST(what_has_come_keeps_awake_once, 2),
    FORKED_TEST(more_processes_than_cores_get_along, 9),
};
RUN_TESTS(tests)

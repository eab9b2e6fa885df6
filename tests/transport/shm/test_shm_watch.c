/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The completion list of the shared-memory transport. */

#include "tests/support/unit_tests.h"
#include "tests/transport/shm/test_shm.h"
#include "tests/transport/watched_messages.h"

/* Each way has its own end: an answer, the last piece, a copy by test(). */
static void watched_messages_come_on_every_way(forked *self) {
  party p = open_party(self);
  for (int w = 0; w < WAYS; w++) {
    static const size_t size = 200000;
    watched it = {.bytes = message_get(&p, &all_ways[w], size), .size = size};
    lcomm_shm_set_ways(p.t, &all_ways[w].ways);
    if (self->rank == 0) {
      fill(it.bytes, size, (uint32_t)w);
      send_to(&p, 1, 3, it.bytes, size, &it.transfer);
    } else {
      receive_from(&p, 0, 3, it.bytes, size, &it.transfer);
    }
    p.v->watch(p.t, &it.transfer, &it);
    double end_s = lcomm_clock_s() + LIMIT_S;
    for (watched_look(&p, &it); !it.over; p.v->progress(p.t)) {
      if (lcomm_completion_pop(p.t)) {
        watched_look(&p, &it);
      }
      forked_require(self, lcomm_clock_s() < end_s, "%s: never listed", all_ways[w].name);
    }
    forked_require(self, it.looks <= 3, "%s: %u looks", all_ways[w].name, it.looks);
    require_bytes(&p, it.bytes, size, (uint32_t)w, all_ways[w].name);
    message_free(&p, &all_ways[w], it.bytes);
    together_in_progress(&p);
  }
  close_party(&p);
}

/* A zero-copy message is listed when it can be read, and what was sent when it was released. */
static void zero_copy_messages_are_listed(forked *self) {
  party p = open_party(self);
  watched it = {.bytes = p.v->memory_get(p.t, 50000), .size = 50000};
  double end_s = lcomm_clock_s() + LIMIT_S;
  if (self->rank == 0) {
    send_to(&p, 1, 3, it.bytes, it.size, &it.transfer);
  } else {
    check(&p, p.v->zero_copy->receive(p.t, 0, 3, it.size, &it.transfer), "zero-copy receive");
  }
  p.v->watch(p.t, &it.transfer, &it);
  for (watched_look(&p, &it); !it.over; p.v->progress(p.t)) {
    if (lcomm_completion_pop(p.t)) {
      watched_look(&p, &it);
    }
    forked_require(self, lcomm_clock_s() < end_s, "never listed");
  }
  if (self->rank == 1) {
    p.v->zero_copy->release(p.t, &it.transfer);
  }
  forked_require(self, it.looks <= 2, "%u looks", it.looks);
  p.v->memory_free(it.bytes);
  close_party(&p);
}

/* What will never come is on no list: an alarm says that all are to be asked about. */
static void a_peer_that_closes_raises_an_alarm(forked *self) {
  party p = open_party(self);
  uint32_t before = p.t->alarms;
  forked_barrier(self);
  if (self->rank == 1) {
    p.v->close(p.t, true);
    return;
  }
  watched it = {.size = 8};
  unsigned char bytes[8];
  receive_from(&p, 1, 3, bytes, sizeof(bytes), &it.transfer);
  p.v->watch(p.t, &it.transfer, &it);
  double end_s = lcomm_clock_s() + LIMIT_S;
  while (p.t->alarms == before) {
    p.v->progress(p.t);
    forked_require(self, lcomm_clock_s() < end_s, "no alarm");
  }
  bool over = false;
  forked_require(self, p.v->test(p.t, &it.transfer, &over, NULL) == LCOMM_ERR_TRANSPORT,
                 "a message of a peer that has closed is not lost");
  p.v->close(p.t, false);
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(messages_are_listed_when_there_is_news, 2),
    FORKED_TEST(nothing_else_is_listed, 2),
    FORKED_TEST(watched_messages_come_on_every_way, 2),
    FORKED_TEST(zero_copy_messages_are_listed, 2),
    FORKED_TEST(a_peer_that_closes_raises_an_alarm, 2),
};
RUN_TESTS(tests)

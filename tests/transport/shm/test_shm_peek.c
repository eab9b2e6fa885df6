/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages read in place, and control messages. */

#include "tests/support/unit_tests.h"
#include "tests/transport/shm/test_shm.h"

enum { TAG = 5 };

/* -------------------------------------------------------- peek and drop */

static bool wait_peek(const party *p, uint32_t tag, const void **bytes, size_t *size) {
  for (double end_s = lcomm_clock_s() + LIMIT_S; lcomm_clock_s() < end_s; sched_yield()) {
    if (p->v->peek(p->t, 1 - p->self->rank, tag, bytes, size)) {
      return true;
    }
  }
  return false;
}

static void short_messages_are_read_in_place(forked *self) {
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

/* Messages of all sizes that progress() has taken in before, two of each tag. */
static void messages_that_were_taken_in_are_read_too(forked *self) {
  enum { TAGS = 40, MANY = 2 * TAGS };
  static unsigned char out[MANY][LCOMM_SHM_INLINE];
  party p = open_party(self);
  lcomm_transfer sent[MANY];
  for (uint32_t i = 0; self->rank == 0 && i < MANY; i++) {
    size_t size = i % TAGS * LCOMM_SHM_INLINE / (TAGS - 1);
    fill(out[i], size, i);
    send_to(&p, 1, i % TAGS, out[i], size, &sent[i]);
  }
  for (uint32_t i = 0; self->rank == 0 && i < MANY; i++) {
    finish(&p, &sent[i]);
  }
  together_in_progress(&p);
  p.v->progress(p.t);
  for (uint32_t i = MANY; self->rank == 1 && i-- > 0;) {
    const void *bytes = NULL;
    size_t there = 0, size = i % TAGS * LCOMM_SHM_INLINE / (TAGS - 1);
    uint32_t number = i < TAGS ? i + TAGS : i - TAGS; /* the first of a tag comes first */
    forked_require(self, wait_peek(&p, i % TAGS, &bytes, &there) && there == size,
                   "message %u has %zu", number, there);
    require_bytes(&p, bytes, size, number, "peek");
    p.v->drop(p.t, 0);
    p.v->drop(p.t, 0); /* once is enough */
  }
  together_in_progress(&p);
  close_party(&p);
}

/* In the way of a peek: another tag, a long message, somebody who has asked,
 * an earlier message that was put aside. */
static void peeking_overtakes_nothing(forked *self) {
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
  forked_require(self, p.v->peek(p.t, 0, 2, &bytes, &size) && strcmp(bytes, "b") == 0,
                 "it overtook what was put aside");
  p.v->progress(p.t);
  p.v->drop(p.t, 0); /* progress() has taken it in again */
  receive_from(&p, 0, 2, in, 16, &received);
  finish(&p, &received);
  forked_require(self, strcmp((char *)in, "b") == 0, "came: %s", (char *)in);
  forked_require(self, !p.v->peek(p.t, 0, 2, &bytes, &size), "it overtook a long one");
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

/* --------------------------------------------------------------- control messages */

static void notices_pass_by_a_full_queue(forked *self) {
  enum { MANY = 200 };
  static unsigned char out[4000], message[LCOMM_CONTROL_SIZE];
  static lcomm_transfer sent[MANY];
  party p = open_party(self);
  if (self->rank == 0) {
    for (int i = 0; i < MANY; i++) {
      send_to(&p, 1, TAG, out, sizeof(out), &sent[i]); /* far more than fits */
    }
    for (uint32_t i = 0; i < 20; i++) {
      fill(message, sizeof(message), i);
      p.v->control.send(p.t, 1, message);
    }
    together(self);
    for (int i = 0; i < MANY; i++) {
      finish(&p, &sent[i]);
    }
  } else {
    int heard = 0;
    together(self);
    forked_require(self, !p.v->control.receive(p.t, message), "heard before anything came");
    for (double end_s = lcomm_clock_s() + LIMIT_S; heard < 2 && lcomm_clock_s() < end_s;) {
      p.v->progress(p.t);
      if (p.v->control.receive(p.t, message)) {
        require_bytes(&p, message, sizeof(message), (uint32_t)heard++, "control message");
      }
    }
    forked_require(self, heard == 2, "heard %d control messages", heard);
    for (int i = 0; i < MANY; i++) {
      lcomm_transfer received;
      receive_from(&p, 0, TAG, out, sizeof(out), &received);
      finish(&p, &received);
    }
    while (p.v->control.receive(p.t, message)) {
      heard++;
    }
    forked_require(self, heard <= 20, "heard %d control messages", heard);
  }
  together_in_progress(&p);
  close_party(&p);
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(short_messages_are_read_in_place, 2),
    FORKED_TEST(messages_that_were_taken_in_are_read_too, 2),
    FORKED_TEST(peeking_overtakes_nothing, 2),
    FORKED_TEST(notices_pass_by_a_full_queue, 2),
};
RUN_TESTS(tests)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages that do not fit, and messages that are cancelled. */

#include "tests/support/unit_tests.h"
#include "tests/transport/shm/test_shm.h"

enum { TAG = 5 };

static void a_message_of_another_size_is_refused(forked *self) {
  party p = open_party(self);
  static unsigned char big[300000];
  static const size_t sent_sizes[] = {9, 300000, 300000, 9, 300000};
  for (int w = 0; w < WAYS; w++) {
    lcomm_shm_set_ways(p.t, &all_ways[w].ways);
    for (int i = 0; i < 5; i++) {
      lcomm_transfer transfer;
      if (self->rank == 0) {
        send_to(&p, 1, TAG, big, sent_sizes[i], &transfer);
        finish(&p, &transfer);
        continue;
      }
      lcomm_status status =
          i < 3 ? p.v->receive(p.t, 0, TAG, big, 8, &transfer)
                : p.v->zero_copy->receive(p.t, 0, TAG, sent_sizes[i] + 1, &transfer);
      check(&p, status, "ask");
      forked_require(self, await(&p, &transfer, NULL) == LCOMM_ERR_TRANSPORT,
                     "a message of another size was taken");
      forked_require(self, strstr(p.t->why, "rank 0 sent") != NULL, "said: %s", p.t->why);
      p.v->cancel(p.t, &transfer);
    }
    together_in_progress(&p);
  }
  close_party(&p);
}

/* Cancelled receives take no byte, and what was sent finds the next one. */
static void a_cancelled_receive_takes_no_byte(forked *self) {
  party p = open_party(self);
  static unsigned char out[2 << 20], in[2 << 20];
  for (int w = 0; w < WAYS; w++) {
    lcomm_transfer first, second;
    lcomm_shm_set_ways(p.t, &all_ways[w].ways);
    fill(out, sizeof(out), (uint32_t)w);
    if (self->rank == 0) {
      together(self);
      send_to(&p, 1, TAG, out, sizeof(out), &first);
      send_to(&p, 1, TAG, out, 100, &second);
      finish(&p, &first);
      finish(&p, &second);
    } else {
      bool over = false;
      memset(in, 0, sizeof(in));
      receive_from(&p, 0, TAG, in, sizeof(in), &first);
      p.v->cancel(p.t, &first); /* nothing had come */
      receive_from(&p, 0, TAG, in, sizeof(in), &first);
      together(self);
      while (!p.self->shared[w] && !over && first.opaque[0]) {
        p.v->progress(p.t);
        check(&p, p.v->test(p.t, &first, &over, NULL), "test");
        if (in[0] != 0) {
          break; /* in the midst of it, or at its end */
        }
      }
      if (!over) {
        p.v->cancel(p.t, &first);
      }
      memset(in, 0, sizeof(in));
      receive_from(&p, 0, TAG, in, 100, &second);
      finish(&p, &second);
      progress_for(&p, 0.005);
      require_bytes(&p, in, 100, (uint32_t)w, all_ways[w].name);
      forked_require(self, in[100] == 0 && in[sizeof(in) - 1] == 0,
                     "%s: bytes came after the cancellation", all_ways[w].name);
    }
    together_in_progress(&p);
  }
  close_party(&p);
}

/* A short send is over once it is in the ring, and not before: only calls of its
 * rank bring it there. Its bytes need not stay. A long one that was cancelled
 * behind a full ring is never seen. */
static void short_sends_are_over_when_they_left_and_cancelled_ones_not_seen(forked *self) {
  enum { FILLERS = 40 };
  static unsigned char large[5000], in[5000];
  lcomm_transfer cancelled, last, fillers[FILLERS];
  bool over[FILLERS] = {false};
  party p = open_party(self);
  if (self->rank == 0) {
    for (uint32_t i = 0; i < FILLERS; i++) {
      unsigned char filler[4096];
      fill(filler, sizeof(filler), i);
      send_to(&p, 1, 1, filler, i % 2 ? sizeof(filler) : 20, &fillers[i]);
      check(&p, p.v->test(p.t, &fillers[i], &over[i], NULL), "test");
      memset(filler, 0, sizeof(filler));
    }
    forked_require(self, over[0], "a short message is not over though there was room");
    forked_require(self, !over[FILLERS - 1], "a short message is over though it waits here");
    send_to(&p, 1, 2, large, sizeof(large), &cancelled);
    p.v->cancel(p.t, &cancelled);
    send_to(&p, 1, 2, "later", 6, &last);
    together(self);
    for (uint32_t i = 0; i < FILLERS; i++) {
      if (!over[i]) {
        finish(&p, &fillers[i]);
      }
    }
    finish(&p, &last);
  } else {
    together(self);
    for (uint32_t i = 0; i < FILLERS; i++) {
      receive_from(&p, 0, 1, in, sizeof(in), &last);
      finish(&p, &last);
      require_bytes(&p, in, i % 2 ? 4096 : 20, i, "filler");
    }
    receive_from(&p, 0, 2, in, sizeof(in), &last);
    finish(&p, &last);
    forked_require(self, strcmp((char *)in, "later") == 0, "came: %s", (char *)in);
  }
  together_in_progress(&p);
  close_party(&p);
}

/* Whoever receives what was cancelled gets anything or nothing, and its memory
 * is not read by the sender any more; other messages are whole. */
static void a_cancelled_send_harms_no_other(forked *self) {
  static unsigned char out[2 << 20], in[2 << 20], lost[2 << 20];
  party p = open_party(self);
  for (int w = 0; w < WAYS; w++) {
    lcomm_transfer sends[3], receives[3];
    lcomm_shm_set_ways(p.t, &all_ways[w].ways);
    fill(out, sizeof(out), 9);
    if (self->rank == 0) {
      unsigned char *gone = message_get(&p, &all_ways[w], sizeof(out));
      send_to(&p, 1, TAG, out, sizeof(out), &sends[0]);
      send_to(&p, 1, TAG + 1, gone, sizeof(out), &sends[1]);
      send_to(&p, 1, TAG + 2, out, sizeof(out), &sends[2]);
      p.v->cancel(p.t, &sends[1]);
      message_free(&p, &all_ways[w], gone);
      together(self);
      finish(&p, &sends[0]);
      finish(&p, &sends[2]);
    } else {
      together(self);
      receive_from(&p, 0, TAG + 1, lost, sizeof(lost), &receives[1]);
      for (uint32_t i = 0; i < 3; i += 2) {
        receive_from(&p, 0, TAG + i, in, sizeof(in), &receives[i]);
        finish(&p, &receives[i]);
        require_bytes(&p, in, sizeof(in), 9, all_ways[w].name);
      }
      p.v->cancel(p.t, &receives[1]);
    }
    together_in_progress(&p);
  }
  close_party(&p);
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(a_message_of_another_size_is_refused, 2),
    FORKED_TEST(a_cancelled_receive_takes_no_byte, 2),
    FORKED_TEST(short_sends_are_over_when_they_left_and_cancelled_ones_not_seen, 2),
    FORKED_TEST(a_cancelled_send_harms_no_other, 2),
};
RUN_TESTS(tests)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The control message of an error arrives, whatever waits before it. */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/support/unit_tests.h"
#include "tests/transport/shm/test_shm.h"

enum { TAG = 7, TICKETS = 20 };

static void tell_text(const party *p, int peer, const char *text) {
  unsigned char message[LCOMM_CONTROL_SIZE] = {0};
  snprintf((char *)message, sizeof(message), "%s", text);
  message[LCOMM_CONTROL_SIZE - 1] = 'z';
  p->v->control.send_error(p->t, peer, message);
}

static void require_text(const party *p, const unsigned char *message, const char *text) {
  forked_require(p->self, strcmp((const char *)message, text) == 0, "heard: %.40s", message);
  forked_require(p->self, message[LCOMM_CONTROL_SIZE - 1] == 'z', "a control message is torn");
}

static void tell_many(const party *p, int peer) {
  unsigned char message[LCOMM_CONTROL_SIZE] = "fingerprint";
  for (int i = 0; i < TICKETS; i++) {
    p->v->control.send(p->t, peer, message);
  }
}

/* Everything else that can wait for a reader does. */
static void an_error_is_heard_behind_tickets_and_a_full_ring(forked *self) {
  enum { MANY = 200 };
  static unsigned char bytes[4000];
  static lcomm_transfer sent[MANY];
  unsigned char message[LCOMM_CONTROL_SIZE];
  party p = open_party(self);
  if (self->rank == 0) {
    tell_many(&p, 1);
    for (int i = 0; i < MANY; i++) {
      send_to(&p, 1, TAG, bytes, sizeof(bytes), &sent[i]); /* far more than fits */
    }
    tell_many(&p, 1);
    tell_text(&p, 1, "the disk is full");
    tell_text(&p, 1, "and more");
    together(self); /* and makes no progress from here on */
    together(self);
    p.v->close(p.t, false);
    return;
  }
  together(self);
  progress_for(&p, 0.02);
  forked_require(self, p.v->control.receive(p.t, message), "the error is lost");
  require_text(&p, message, "the disk is full");
  for (int heard = 0; p.v->control.receive(p.t, message); heard++) {
    forked_require(self, strcmp((char *)message, "fingerprint") == 0, "heard: %.40s", message);
    forked_require(self, heard < TICKETS, "control messages without an end");
  }
  together(self);
  p.v->close(p.t, false);
}

static void the_first_error_of_every_peer_is_heard_once(forked *self) {
  enum { ROUNDS = 3 };
  unsigned char message[LCOMM_CONTROL_SIZE];
  bool heard[FORKED_MAX] = {false};
  char text[32];
  party p = open_party(self);
  for (int round = 0; round < ROUNDS; round++) {
    for (int peer = 0; peer < self->size; peer++) {
      snprintf(text, sizeof(text), "error %d of rank %d", round, self->rank);
      if (peer != self->rank) {
        tell_text(&p, peer, text);
      }
    }
  }
  together(self);
  for (int i = 1; i < self->size; i++) {
    int round = -1, from = -1;
    forked_require(self, p.v->control.receive(p.t, message), "only %d errors came", i - 1);
    forked_require(self, sscanf((char *)message, "error %d of rank %d", &round, &from) == 2,
                   "heard: %.40s", message);
    forked_require(self, round == 0, "the first error of rank %d was lost", from);
    forked_require(self, from >= 0 && from < self->size && !heard[from], "rank %d again", from);
    heard[from] = true;
  }
  forked_require(self, !p.v->control.receive(p.t, message), "heard once more: %.40s", message);
  close_party(&p);
}

static void an_error_wakes_who_sleeps(forked *self) {
  unsigned char message[LCOMM_CONTROL_SIZE];
  party p = open_party(self);
  if (self->rank == 0) {
    struct timespec moment = {0, 50000000};
    nanosleep(&moment, NULL);
    tell_text(&p, 1, "wake up");
    close_party(&p);
    return;
  }
  while (!p.v->control.receive(p.t, message)) {
    p.v->progress(p.t);
    struct pollfd bed = {.fd = p.v->wakeup->arm(p.t), .events = POLLIN};
    if (bed.fd >= 0) {
      forked_require(self, poll(&bed, 1, 20000) == 1, "the error did not wake");
    }
    p.v->wakeup->disarm(p.t);
  }
  require_text(&p, message, "wake up");
  close_party(&p);
}

static void an_error_outlives_its_teller(forked *self) {
  unsigned char message[LCOMM_CONTROL_SIZE], in[8];
  lcomm_transfer received;
  lcomm_status status = LCOMM_OK;
  party p = open_party(self);
  if (self->rank == 1) {
    tell_many(&p, 0);
    tell_text(&p, 0, "no memory");
    forked_die();
  }
  receive_from(&p, 1, TAG, in, sizeof(in), &received);
  status = await(&p, &received, NULL);
  forked_require(self, status == LCOMM_ERR_TRANSPORT, "a message of the dead came");
  forked_require(self, p.v->control.receive(p.t, message), "the error is lost");
  require_text(&p, message, "no memory");
  p.v->close(p.t, false);
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(an_error_is_heard_behind_tickets_and_a_full_ring, 2),
    FORKED_TEST(the_first_error_of_every_peer_is_heard_once, 2, 5),
    FORKED_TEST(an_error_wakes_who_sleeps, 2),
    FORKED_TEST_DYING(an_error_outlives_its_teller, 2, 1),
};
RUN_TESTS(tests)

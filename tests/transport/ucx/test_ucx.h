/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TRANSPORT_UCX_TEST_UCX_H
#define LCOMM_TESTS_TRANSPORT_UCX_TEST_UCX_H

/* What the tests of the UCX transport share. Each program uses some. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "libcomm/base/clock.h"
#include "libcomm/transport/ucx/ucx_internal.h"
#include "tests/transport/forked_party.h"

#define UNUSED __attribute__((unused))

static const double LIMIT_S = 60;

/* Everything below needs a UCX with a device. It is tried in a process of its
 * own, because UCX is better not there when a process forks. */
UNUSED static void skip_without_ucx(void) {
  int status = 0;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    lcomm_why why = {.text = ""};
    lcomm_ucx_place place;
    bool works =
        lcomm_ucx_load(&why) == LCOMM_OK && lcomm_ucx_place_open("", &place, &why) == LCOMM_OK;
    if (!works) {
      fprintf(stderr, "UCX does not work here: %s\n", why.text);
    }
    _exit(works ? 0 : 1);
  }
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    skip();
  }
}

/* FORKED_TEST and FORKED_TEST_DYING, skipped without UCX. */
#define UCX_TEST(property, ...) FORKED_TEST_BY(ucx_test, property, __VA_ARGS__)
#define UCX_TEST_DYING(property, count, dies) FORKED_TEST_DYING_BY(ucx_test, property, count, dies)

UNUSED static void ucx_test(void **state) {
  skip_without_ucx();
  forked_test(state);
}

UNUSED static lcomm_status try_open(forked *self, lcomm_transport **t, lcomm_why *why) {
  return try_open_by(self, &lcomm_transport_ucx, LIMIT_S, t, why);
}

UNUSED static party open_party(forked *self) {
  party p = open_party_by(self, &lcomm_transport_ucx, LIMIT_S);
  for (int peer = 0; peer < self->size; peer++) {
    forked_require(self, p.v->reaches(p.t, peer) == (peer != self->rank), "reaches %d: %s", peer,
                   p.t->why);
  }
  return p;
}

UNUSED static void close_party(party *p) {
  forked_barrier(p->self);
  p->v->close(p->t, true);
}

UNUSED static void sleep_for(double seconds) {
  struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, NULL);
}

UNUSED static void send_to(const party *p, int peer, uint32_t tag, const void *bytes, size_t size,
                           lcomm_transfer *transfer) {
  lcomm_status status = p->v->send(p->t, peer, tag, bytes, size, transfer);
  forked_require(p->self, status == LCOMM_OK, "send to %d: %s", peer, p->t->why);
}

UNUSED static void receive_from(const party *p, int peer, uint32_t tag, void *bytes,
                                size_t capacity, lcomm_transfer *transfer) {
  lcomm_status status = p->v->receive(p->t, peer, tag, bytes, capacity, transfer);
  forked_require(p->self, status == LCOMM_OK, "receive from %d: %s", peer, p->t->why);
}

/* Until the transfer is over or has failed. */
UNUSED static lcomm_status finish(const party *p, lcomm_transfer *transfer, size_t *size) {
  double deadline_s = lcomm_clock_s() + LIMIT_S;
  bool over = false;
  while (!over) {
    p->v->progress(p->t);
    lcomm_status status = p->v->test(p->t, transfer, &over, size);
    if (status != LCOMM_OK) {
      return status;
    }
    forked_require(p->self, lcomm_clock_s() < deadline_s, "a message did not end");
    if (!over) {
      sleep_for(2e-5);
    }
  }
  return LCOMM_OK;
}

UNUSED static void expect_end(const party *p, lcomm_transfer *transfer, size_t size) {
  size_t got = SIZE_MAX;
  lcomm_status status = finish(p, transfer, &got);
  forked_require(p->self, status == LCOMM_OK, "a message failed: %s", p->t->why);
  forked_require(p->self, got == size, "%zu bytes instead of %zu", got, size);
}

/* Fails, and says all of this. */
UNUSED static void expect_failure(const party *p, lcomm_status status, const char *who,
                                  const char *what) {
  const char *why = p->t->why;
  forked_require(p->self, status == LCOMM_ERR_TRANSPORT, "status %d", (int)status);
  forked_require(p->self, strstr(why, who) && strstr(why, what), "it says '%s'", why);
}

/* Make progress for a while without asking for anything. */
UNUSED static void idle(const party *p, double seconds) {
  double end_s = lcomm_clock_s() + seconds;
  while (lcomm_clock_s() < end_s) {
    p->v->progress(p->t);
    sleep_for(1e-4);
  }
}

/* Bytes that say where they come from. */
UNUSED static unsigned char *pattern(size_t size, unsigned seed) {
  unsigned char *bytes = malloc(size + 1);
  uint32_t state = seed * 2654435761u + 12345u;
  for (size_t i = 0; bytes && i < size; i++) {
    state = state * 1664525u + 1013904223u;
    bytes[i] = (unsigned char)(state >> 24);
  }
  return bytes;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TRANSPORT_SHM_TEST_SHM_H
#define LCOMM_TESTS_TRANSPORT_SHM_TEST_SHM_H

/* What the tests of the shared-memory transport share. Each program uses some. */

#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libcomm/base/clock.h"
#include "libcomm/transport/shm/shm_internal.h"
#include "tests/transport/forked_party.h"

#define UNUSED __attribute__((unused))

static const double LIMIT_S = 20;

UNUSED static lcomm_status try_open(forked *self, lcomm_transport **t, lcomm_why *why) {
  return try_open_by(self, &lcomm_transport_shm, LIMIT_S, t, why);
}

UNUSED static party open_party(forked *self) {
  return open_party_by(self, &lcomm_transport_shm, LIMIT_S);
}

/* All ranks of the transport, which may be threads. */
UNUSED static void together(forked *self) {
  char mine = 0, all[FORKED_MAX];
  if (self->boot.allgather(self->boot.context, &mine, all, 1) != 0) {
    exit(EXIT_SUCCESS); /* somebody else has said why */
  }
}

UNUSED static void close_party(party *p) {
  together(p->self);
  p->v->close(p->t, true);
}

UNUSED static void check(const party *p, lcomm_status status, const char *what) {
  forked_require(p->self, status == LCOMM_OK, "%s: %s", what, p->t->why);
}

/* ------------------------------------------------------------- messages */

/* Bytes that differ from one seed to the next; made once, before any rank. */
enum { PATTERN_SIZE = 4 << 20, SEEDS = 1021 };
static unsigned char pattern[PATTERN_SIZE + SEEDS];

__attribute__((constructor)) static void make_pattern(void) {
  uint32_t x = 1;
  for (size_t i = 0; i < sizeof(pattern); i++) {
    x = x * 1664525u + 1013904223u;
    pattern[i] = (unsigned char)(x >> 24 | 1); /* never 0 */
  }
}

UNUSED static void fill(unsigned char *bytes, size_t size, uint32_t seed) {
  memcpy(bytes, pattern + seed % SEEDS, size);
}

UNUSED static void require_bytes(const party *p, const unsigned char *bytes, size_t size,
                                 uint32_t seed, const char *what) {
  const unsigned char *right = pattern + seed % SEEDS;
  size_t i = 0;
  if (size == 0 || memcmp(bytes, right, size) == 0) {
    return;
  }
  while (bytes[i] == right[i]) {
    i++;
  }
  forked_require(p->self, false, "%s: byte %zu of %zu is wrong", what, i, size);
}

UNUSED static void send_to(const party *p, int peer, uint32_t tag, const void *bytes, size_t size,
                           lcomm_transfer *transfer) {
  check(p, p->v->send(p->t, peer, tag, bytes, size, transfer), "send");
}

UNUSED static void receive_from(const party *p, int peer, uint32_t tag, void *bytes, size_t size,
                                lcomm_transfer *transfer) {
  check(p, p->v->receive(p->t, peer, tag, bytes, size, transfer), "receive");
}

/* Until it is over or fails. */
UNUSED static lcomm_status await(const party *p, lcomm_transfer *transfer, size_t *size) {
  double limit_s = lcomm_clock_s() + LIMIT_S;
  for (bool over = false;;) {
    p->v->progress(p->t);
    lcomm_status status = p->v->test(p->t, transfer, &over, size);
    if (status != LCOMM_OK || over) {
      return status;
    }
    if (lcomm_clock_s() >= limit_s) {
      const lcomm_shm_record *record = lcomm_shm_record_of(transfer);
      forked_require(p->self, false, "a message did not come to its end: kind %d, state %d, tag %u",
                     record->kind, record->state, record->tag);
    }
    sched_yield();
  }
}

UNUSED static void finish(const party *p, lcomm_transfer *transfer) {
  check(p, await(p, transfer, NULL), "test");
}

/* All ranks, making progress until the last one is here. Tag of its own. */
UNUSED static void together_in_progress(const party *p) {
  enum { HERE = 1 << 29 };
  lcomm_transfer sent[FORKED_MAX], received[FORKED_MAX];
  for (int peer = 0; peer < p->self->size; peer++) {
    if (peer != p->self->rank) {
      send_to(p, peer, HERE, "", 0, &sent[peer]);
      receive_from(p, peer, HERE, NULL, 0, &received[peer]);
    }
  }
  for (int peer = 0; peer < p->self->size; peer++) {
    if (peer != p->self->rank) {
      finish(p, &received[peer]);
      finish(p, &sent[peer]);
    }
  }
}

/* As finish, asleep between the tests. */
UNUSED static void finish_asleep(const party *p, lcomm_transfer *transfer) {
  for (bool over = false;;) {
    p->v->progress(p->t);
    check(p, p->v->test(p->t, transfer, &over, NULL), "test");
    if (over) {
      return;
    }
    struct pollfd bed = {.fd = p->v->wakeup->arm(p->t), .events = POLLIN};
    forked_require(p->self, bed.fd != LCOMM_ARM_NEVER, "arm cannot tell");
    if (bed.fd >= 0) {
      forked_require(p->self, poll(&bed, 1, 20000) == 1, "a wake-up was lost");
    }
    p->v->wakeup->disarm(p->t);
  }
}

UNUSED static void progress_for(const party *p, double seconds) {
  for (double end_s = lcomm_clock_s() + seconds; lcomm_clock_s() < end_s; sched_yield()) {
    p->v->progress(p->t);
  }
}

/* ----------------------------------------------------------------- ways */

/* Everything that can be forced. shared: messages lie in memory of memory_get. */
typedef struct way {
  const char *name;
  bool shared;
  lcomm_shm_ways ways;
} way;

static const way all_ways[] = {
    {"as it comes", false, {1 << 20, 32 << 20, true, true}},
    {"view", true, {0, 0, true, true}},
    {"copy", false, {4 << 20, 32 << 20, true, true}},
    {"few copies", false, {4 << 20, 32 << 10, true, true}},
    {"read", false, {0, 0, true, true}},
    {"stream", false, {0, 0, false, true}},
    {"read, no view", true, {0, 0, true, false}},
    {"stream, no view", true, {0, 0, false, false}},
    {"stream of a copy", false, {4 << 20, 32 << 20, false, false}},
};
enum { WAYS = sizeof(all_ways) / sizeof(all_ways[0]) };

UNUSED static void *message_get(const party *p, const way *w, size_t size) {
  void *memory = w->shared ? p->v->memory_get(p->t, size) : malloc(size + 1);
  forked_require(p->self, memory != NULL, "no memory for %zu bytes", size);
  return memory;
}

UNUSED static void message_free(const party *p, const way *w, void *memory) {
  if (w->shared) {
    p->v->memory_free(memory);
  } else {
    free(memory);
  }
}

static const size_t all_sizes[] = {0,
                                   1,
                                   47,
                                   48,
                                   49,
                                   111,
                                   112,
                                   113,
                                   4095,
                                   4096,
                                   4159,
                                   4160,
                                   4161,
                                   8192,
                                   8193,
                                   65535,
                                   65536,
                                   262145,
                                   (1 << 20) - 1,
                                   1 << 20,
                                   (1 << 20) + 1,
                                   (3 << 20) + 5};
enum { SIZES = sizeof(all_sizes) / sizeof(all_sizes[0]) };

#endif

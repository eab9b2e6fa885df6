/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TRANSPORT_WATCHED_MESSAGES_H
#define LCOMM_TESTS_TRANSPORT_WATCHED_MESSAGES_H

/* What every transport with a completion list promises. Used after the helpers of one transport
 * (test_shm.h, test_ucx.h). */

#include "libcomm/transport/completion.h"

enum { WATCHED_SIZES = 7, WATCHED_EACH = 6, WATCHED = WATCHED_SIZES * WATCHED_EACH };

static const size_t watched_sizes[WATCHED_SIZES] = {0, 8, 5000, 65536, 1 << 20, 3 << 20, 40};

typedef struct watched {
  lcomm_transfer transfer;
  unsigned char *bytes;
  size_t size;
  unsigned looks;
  bool over;
} watched;

static inline bool watched_look(const party *p, watched *it) {
  it->looks++;
  forked_require(p->self, !it->over, "a message that is over was listed");
  forked_require(p->self, p->v->test(p->t, &it->transfer, &it->over, NULL) == LCOMM_OK, "test: %s",
                 p->t->why);
  return it->over;
}

/* Message i: from rank 0 to 1 if i is even, else back; those of one size follow each other. */
static inline void watched_start(const party *p, watched *it, int i, bool receives) {
  it->size = watched_sizes[i % WATCHED_SIZES];
  it->bytes = calloc(1, it->size + 1);
  int peer = 1 - p->self->rank;
  if (receives) {
    receive_from(p, peer, (uint32_t)i, it->bytes, it->size, &it->transfer);
  } else {
    memset(it->bytes, i + 1, it->size);
    send_to(p, peer, (uint32_t)i, it->bytes, it->size, &it->transfer);
  }
  p->v->watch(p->t, &it->transfer, it);
}

/* All are looked at once, and then only those that are listed. */
static inline void watched_await(const party *p, watched *all) {
  double end_s = lcomm_clock_s() + LIMIT_S;
  int left = WATCHED;
  for (int i = 0; i < WATCHED; i++) {
    left -= watched_look(p, &all[i]);
  }
  while (left > 0) {
    p->v->progress(p->t);
    for (watched *it = lcomm_completion_pop(p->t); it; it = lcomm_completion_pop(p->t)) {
      left -= watched_look(p, it);
    }
    forked_require(p->self, lcomm_clock_s() < end_s, "%d messages were never listed", left);
  }
}

/* As many looks as there is news: once after the start, once for each MiB that a look itself
 * copies, and once at the end. */
static inline void messages_are_listed_when_there_is_news(forked *self) {
  party p = open_party(self);
  watched all[WATCHED];
  memset(all, 0, sizeof(all));
  for (int i = 0; i < WATCHED; i++) {
    watched_start(&p, &all[i], i, i % 2 != self->rank);
  }
  watched_await(&p, all);
  for (int i = 0; i < WATCHED; i++) {
    unsigned most = 3 + (unsigned)(all[i].size >> 20);
    forked_require(self, all[i].looks <= most, "%u looks at a message of %zu bytes", all[i].looks,
                   all[i].size);
    forked_require(self, all[i].size == 0 || all[i].bytes[all[i].size - 1] == i + 1,
                   "message %d is not what was sent", i);
    free(all[i].bytes);
  }
  close_party(&p);
}

/* Not before it is there; nor once test() has said that it is over, or it was cancelled; nor one
 * that nobody watches. */
static inline void nothing_else_is_listed(forked *self) {
  enum { FIRST, SECOND, UNWATCHED, NEVER, COUNT };
  party p = open_party(self);
  watched all[COUNT];
  memset(all, 0, sizeof(all));
  for (int i = 0; self->rank == 1 && i < COUNT; i++) {
    all[i].bytes = calloc(1, 9000);
    receive_from(&p, 0, (uint32_t)i, all[i].bytes, 9000, &all[i].transfer);
    if (i != UNWATCHED) {
      p.v->watch(p.t, &all[i].transfer, &all[i]);
    }
  }
  p.v->progress(p.t);
  forked_require(self, !lcomm_completion_pop(p.t), "listed before anything was sent");
  forked_barrier(self);
  for (int i = 0; self->rank == 0 && i < NEVER; i++) {
    all[i].bytes = calloc(1, 9000);
    send_to(&p, 1, (uint32_t)i, all[i].bytes, 9000, &all[i].transfer);
  }
  for (int i = 0; i < NEVER; i++) {
    while (!all[i].over) {
      p.v->progress(p.t);
      watched_look(&p, &all[i]);
    }
  }
  if (self->rank == 1) {
    p.v->cancel(p.t, &all[NEVER].transfer);
  }
  forked_require(self, !lcomm_completion_pop(p.t), "listed although it was over");
  for (int i = 0; i < COUNT; i++) {
    free(all[i].bytes);
  }
  close_party(&p);
}

#endif

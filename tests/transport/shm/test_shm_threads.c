/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Two ends in two threads of one process: what a thread sanitizer can see of
 * the transport, which it could not between processes. */

#include <pthread.h>
#include <unistd.h>

#include "tests/transport/shm/test_shm.h"

enum { ENDS = 2, TAG = 5 };

typedef struct end {
  forked self;
  pthread_t thread;
} end;

static end ends[ENDS];
static pthread_barrier_t barrier;
static unsigned char exchange[ENDS * 4096];

static int gather(void *context, const void *send, void *receive, size_t size) {
  forked *self = context;
  if (size > 4096) {
    return 1;
  }
  memcpy(exchange + (size_t)self->rank * size, send, size);
  pthread_barrier_wait(&barrier);
  memcpy(receive, exchange, ENDS * size);
  pthread_barrier_wait(&barrier);
  return 0;
}

/* A message of every size each way, half of them zero-copy, asleep or awake. */
static void exchange_all(const party *p, const way *w) {
  int peer = 1 - p->self->rank;
  lcomm_shm_set_ways(p->t, &w->ways);
  for (uint32_t i = 0; i < SIZES; i++) {
    size_t size = all_sizes[i];
    lcomm_transfer sent, received;
    unsigned char *out = message_get(p, w, size), *in = malloc(size + 1);
    void (*wait)(const party *, lcomm_transfer *) = i % 3 ? finish_asleep : finish;
    fill(out, size, i);
    send_to(p, peer, TAG, out, size, &sent);
    if (i % 2 == 0) {
      receive_from(p, peer, TAG, in, size, &received);
      wait(p, &received);
    } else {
      check(p, p->v->zero_copy->receive(p->t, peer, TAG, size, &received), "zero-copy receive");
      wait(p, &received);
      check(p, p->v->zero_copy->get(p->t, &received, 0, size, in), "get");
      p->v->zero_copy->release(p->t, &received);
    }
    require_bytes(p, in, size, i, w->name);
    wait(p, &sent);
    message_free(p, w, out);
    free(in);
  }
  together_in_progress(p);
}

static void *live(void *context) {
  end *me = context;
  party p = open_party(&me->self);
  for (int w = 0; w < WAYS; w++) {
    exchange_all(&p, &all_ways[w]);
  }
  together(&me->self); /* what progress has taken in is not seen by peek */
  for (uint32_t i = 0; i < 2000; i++) {
    const void *bytes = NULL;
    size_t size = 0;
    lcomm_transfer sent;
    send_to(&p, 1 - me->self.rank, i, &i, sizeof(i), &sent);
    while (!p.v->peek(p.t, 1 - me->self.rank, i, &bytes, &size)) {
      sched_yield();
    }
    forked_require(&me->self, size == sizeof(i) && memcmp(bytes, &i, size) == 0, "wrong bytes");
    p.v->drop(p.t, 1 - me->self.rank);
  }
  close_party(&p);
  return NULL;
}

static void two_threads_talk_like_two_processes(forked *self) {
  pthread_barrier_init(&barrier, NULL, ENDS);
  for (int i = 0; i < ENDS; i++) {
    ends[i].self = *self;
    ends[i].self.rank = i;
    ends[i].self.size = ENDS;
    ends[i].self.identities[1] = self->identities[0];
    ends[i].self.boot = (lcomm_bootstrap){i, ENDS, &ends[i].self, gather};
  }
  for (int i = 0; i < ENDS; i++) {
    forked_require(self, pthread_create(&ends[i].thread, NULL, live, &ends[i]) == 0, "no thread");
  }
  for (int i = 0; i < ENDS; i++) {
    pthread_join(ends[i].thread, NULL);
  }
  pthread_barrier_destroy(&barrier);
}

int main(void) {
  const struct CMUnitTest tests[] = {FORKED_TEST(two_threads_talk_like_two_processes, 1)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

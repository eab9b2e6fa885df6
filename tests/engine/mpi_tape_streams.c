/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 */

/* Calls in any kind of stream: that of the highest priority, which has the queues of the library's
 * own, the default stream by both of its names, and that of a thread. */

#include <pthread.h>

#include "tests/engine/tape_calls.h"

enum { ROUNDS = 2 };

static const char *const policies[] = {"net=int8 min=1", "net=topk:0.05 min=1"};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

/* CUDA's names. */
#define STREAM_LEGACY ((void *)1)
#define STREAM_PER_THREAD ((void *)2)

static void require_wanted(const held *it, const char *policy, const char *what) {
  for (int i = 0; i < CALLS; i++) {
    require(memcmp(it->results[i], wanted[i], count_of(i) * sizeof(float)) == 0,
            "'%s', %s, call %d: other bits than on the host", policy, what, i);
  }
}

/* Two calls of each shape are in flight. */
static void sum_round(lcomm_comm *comm, const held *it) {
  restore(it);
  for (int i = 0; i < CALLS; i++) {
    sum_in_stream(comm, it, i);
  }
  check(device->stream.finish(it->stream));
}

static void sum_all(held *it, const char *policy, const char *what) {
  lcomm_comm *comm = make_driven(policy, mpi_size, LCOMM_PROGRESS_CALLS);
  for (int round = 0; round < ROUNDS; round++) {
    sum_round(comm, it);
    require_wanted(it, policy, what);
  }
  require_fine(NULL, lcomm_destroy(comm));
}

static void sum_in(void *stream, const char *what) {
  for (int p = 0; p < POLICIES; p++) {
    held it;
    make_wanted(policies[p]);
    begin_held(&it);
    void *own = it.stream;
    it.stream = stream;
    sum_all(&it, policies[p], what);
    it.stream = own;
    free_held(&it);
  }
}

static void streams_of_the_highest_priority(void) {
  for (int p = 0; p < POLICIES; p++) {
    held it;
    make_wanted(policies[p]);
    begin_held(&it); /* makes one */
    sum_all(&it, policies[p], "the highest priority");
    free_held(&it);
  }
}

static void the_default_stream(void) {
  sum_in(NULL, "the default stream");
  sum_in(STREAM_LEGACY, "the default stream by its name");
}

static void *sum_in_another_thread(void *argument) {
  check(device->use(0));
  sum_in(STREAM_PER_THREAD, "the stream of another thread");
  return argument;
}

static void streams_of_threads(void) {
  pthread_t thread;
  sum_in(STREAM_PER_THREAD, "the stream of the thread");
  require(pthread_create(&thread, NULL, sum_in_another_thread, NULL) == 0, "there is no thread");
  pthread_join(thread, NULL);
}

static const mpi_property properties[] = {
    PROPERTY(streams_of_the_highest_priority),
    PROPERTY(the_default_stream),
    PROPERTY(streams_of_threads),
    PROPERTY(nothing_is_left_on_the_device),
};
RUN_PROPERTIES(pausing_device_main, properties)

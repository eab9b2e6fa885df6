/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Several communicators in a process: who waits in one moves the others, whatever
 * threads do and however the others end. */

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "libcomm/engine/engine.h"
#include "tests/support/forked_comm.h"
#include "tests/support/unit_tests.h"

enum { COUNT = 60000, MANY = 12 };

static float values[MANY][COUNT];
static const char *transport = "shm";

/* Fewer where each takes longer. */
static int rounds(int most) {
  return strcmp(transport, "shm") == 0 ? most : most / 10;
}

static lcomm_comm *make(forked *self) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = "";
  config.transport = transport;
  config.timeout_s = 50;
  config.progress = LCOMM_PROGRESS_CALLS;
  return forked_create(self, &config);
}

/* Sums of whole numbers are exact in any order. */
static void fill(const forked *self, int which) {
  for (int i = 0; i < COUNT; i++) {
    values[which][i] = (float)((self->rank + 1) * (1 + (i + which) % 7));
  }
}

static void check(forked *self, int which) {
  float factor = (float)(self->size * (self->size + 1) / 2);
  for (int i = 0; i < COUNT; i++) {
    float wanted = factor * (float)(1 + (i + which) % 7);
    forked_require(self, values[which][i] == wanted, "sum %d, element %d: %g, not %g", which, i,
                   (double)values[which][i], (double)wanted);
  }
}

static lcomm_status start(const forked *self, lcomm_comm *comm, int which, lcomm_request *request) {
  fill(self, which);
  return lcomm_iallreduce(comm, values[which], values[which], COUNT, LCOMM_FLOAT32, LCOMM_SUM,
                          request);
}

static lcomm_status sum(const forked *self, lcomm_comm *comm, int which) {
  fill(self, which);
  return lcomm_allreduce(comm, values[which], values[which], COUNT, LCOMM_FLOAT32, LCOMM_SUM);
}

/* ------------------------------------------------------------------- orders */

/* All have started in both when anybody waits. */
static void ranks_may_wait_crosswise(forked *self) {
  lcomm_request request;
  lcomm_comm *a = make(self), *b = make(self);
  for (int round = 0; round < rounds(20); round++) {
    forked_fine(self, a, start(self, a, 0, &request), "a start");
    if (self->rank == 0) {
      forked_fine(self, a, lcomm_wait(a, &request), "the wait, first");
      forked_fine(self, b, sum(self, b, 1), "the sum, last");
    } else {
      forked_fine(self, b, sum(self, b, 1), "the sum, first");
      forked_fine(self, a, lcomm_wait(a, &request), "the wait, last");
    }
    check(self, 0);
    check(self, 1);
  }
  forked_destroy(self, a);
  forked_destroy(self, b);
}

/* Every rank waits in another order. */
static void ranks_may_wait_in_any_order(forked *self) {
  enum { ROUNDS = 6 };
  lcomm_comm *comms[MANY];
  lcomm_request requests[MANY];
  for (int i = 0; i < MANY; i++) {
    comms[i] = make(self);
  }
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < MANY; i++) {
      forked_fine(self, comms[i], start(self, comms[i], i, &requests[i]), "a start");
    }
    for (int i = 0; i < MANY; i++) {
      int next = (i * 5 + self->rank * 4 + round) % MANY;
      forked_fine(self, comms[next], lcomm_wait(comms[next], &requests[next]), "a wait");
      check(self, next);
    }
  }
  for (int i = 0; i < MANY; i++) {
    forked_destroy(self, comms[i]);
  }
}

static void ranks_may_test_crosswise(forked *self) {
  int done = 0;
  lcomm_request one, other;
  lcomm_comm *a = make(self), *b = make(self);
  forked_fine(self, a, start(self, a, 0, &one), "a start");
  forked_fine(self, b, start(self, b, 1, &other), "another");
  lcomm_comm *first = self->rank == 0 ? a : b, *last = self->rank == 0 ? b : a;
  while (!done) {
    forked_fine(self, first, lcomm_test(first, self->rank == 0 ? &one : &other, &done), "a test");
  }
  forked_fine(self, last, lcomm_wait(last, self->rank == 0 ? &other : &one), "the wait");
  check(self, 0);
  check(self, 1);
  forked_destroy(self, a);
  forked_destroy(self, b);
}

/* The making of a part waits, too. */
static void a_split_moves_others(forked *self) {
  lcomm_request request;
  lcomm_comm *a = make(self), *b = make(self), *part = NULL;
  forked_fine(self, a, start(self, a, 0, &request), "a start");
  if (self->rank == 0) {
    forked_fine(self, a, lcomm_wait(a, &request), "the wait, first");
  }
  forked_fine(self, b, lcomm_split(b, 0, 0, NULL, &part), "a split");
  if (self->rank != 0) {
    forked_fine(self, a, lcomm_wait(a, &request), "the wait, last");
  }
  check(self, 0);
  forked_destroy(self, part);
  forked_destroy(self, b);
  forked_destroy(self, a);
}

/* ------------------------------------------------------------------ failures */

/* Rank 0 waits in b when a fails. */
static void what_fails_meanwhile_fails_alone(forked *self) {
  lcomm_request request;
  lcomm_comm *a = make(self), *b = make(self);
  if (self->rank == 0) {
    forked_fine(self, a, start(self, a, 0, &request), "a start");
    forked_barrier(self);
    forked_fine(self, b, sum(self, b, 1), "the sum beside a failure");
    check(self, 1);
    lcomm_status status = lcomm_wait(a, &request);
    forked_require(self, status == LCOMM_ERR_ABORTED && strstr(lcomm_last_error(a), "on purpose"),
                   "what failed says %s: %s", lcomm_status_name(status), lcomm_last_error(a));
  } else {
    forked_barrier(self);
    lcomm_abort(a, "on purpose");
    lcomm_progress(a);
    forked_fine(self, b, sum(self, b, 1), "the sum beside a failure");
  }
  forked_require(self, lcomm_destroy(a) == LCOMM_ERR_ABORTED, "what failed ends as it failed");
  forked_fine(self, b, sum(self, b, 1), "another sum");
  forked_destroy(self, b);
}

/* Operations of one communicator are in flight when another is destroyed. */
static void the_end_of_one_moves_others(forked *self) {
  lcomm_request request;
  lcomm_comm *a = make(self);
  for (int i = 0; i < 10; i++) {
    lcomm_comm *b = make(self);
    forked_fine(self, a, start(self, a, 0, &request), "a start");
    if (self->rank == 0) {
      forked_fine(self, a, lcomm_wait(a, &request), "the wait, first");
      forked_destroy(self, b);
    } else {
      forked_destroy(self, b);
      forked_fine(self, a, lcomm_wait(a, &request), "the wait, last");
    }
    check(self, 0);
  }
  forked_destroy(self, a);
}

/* -------------------------------------------------------------------- sleep */

static double processor_s(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void who_waits_sleeps_whatever_is_in_flight(forked *self) {
  lcomm_request request;
  lcomm_comm *a = make(self), *b = make(self);
  forked_fine(self, a, start(self, a, 0, &request), "a start");
  double before_s = processor_s();
  if (self->rank == 1) {
    sleep(2);
  }
  forked_fine(self, b, sum(self, b, 1), "the sum");
  forked_require(self, processor_s() - before_s < 0.5, "2 s of waiting cost %g s of a processor",
                 processor_s() - before_s);
  forked_fine(self, a, lcomm_wait(a, &request), "the wait");
  forked_destroy(self, a);
  forked_destroy(self, b);
}

/* ------------------------------------------------------------------- threads */

typedef struct worker {
  forked *self;
  lcomm_comm *comm;
  int which;
  sem_t *begin, *over;
} worker;

/* The program has a thread that has started something and waits for another thread,
 * which waits in another communicator. */
static void *wait_for_the_other(void *argument) {
  worker *w = argument;
  lcomm_request request;
  forked_fine(w->self, w->comm, start(w->self, w->comm, 0, &request), "a start");
  sem_post(w->begin);
  if (w->self->rank == 0) {
    sem_wait(w->over);
  }
  forked_fine(w->self, w->comm, lcomm_wait(w->comm, &request), "the wait");
  if (w->self->rank != 0) {
    sem_post(w->over);
  }
  return NULL;
}

static void a_thread_moves_what_others_have_started(forked *self) {
  pthread_t thread;
  sem_t begin, over;
  lcomm_comm *a = make(self), *b = make(self);
  sem_init(&begin, 0, 0);
  sem_init(&over, 0, 0);
  worker w = {.self = self, .comm = a, .begin = &begin, .over = &over};
  pthread_create(&thread, NULL, wait_for_the_other, &w);
  sem_wait(&begin);
  if (self->rank != 0) {
    sem_wait(&over); /* a is over before b begins, here */
  }
  forked_fine(self, b, sum(self, b, 1), "the sum");
  if (self->rank == 0) {
    sem_post(&over);
  }
  pthread_join(thread, NULL);
  check(self, 0);
  check(self, 1);
  forked_destroy(self, a);
  forked_destroy(self, b);
}

static void *work_often(void *argument) {
  worker *w = argument;
  lcomm_request request;
  for (int round = 0; round < rounds(150); round++) {
    forked_fine(w->self, w->comm, start(w->self, w->comm, w->which, &request), "a start");
    if (round % 3 == w->which % 3) {
      usleep(200); /* others may move it */
    }
    forked_fine(w->self, w->comm, lcomm_wait(w->comm, &request), "a wait");
    check(w->self, w->which);
    forked_fine(w->self, w->comm, lcomm_barrier(w->comm), "a barrier");
  }
  forked_destroy(w->self, w->comm);
  return NULL;
}

static void threads_share_a_process_with_a_communicator_each(forked *self) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  worker workers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){.self = self, .comm = make(self), .which = i};
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_create(&threads[i], NULL, work_often, &workers[i]);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
}

static void test_on_all_transports(void **state) {
  static const char *const names[] = {"shm", "ucx"};
  for (int i = 0; i < (lcomm_ucx_version() ? 2 : 1); i++) {
    transport = names[i];
    forked_test(state);
  }
  transport = "shm";
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST_BY(test_on_all_transports, ranks_may_wait_crosswise, 2, 3),
    FORKED_TEST(ranks_may_wait_in_any_order, 2, 4),
    FORKED_TEST_BY(test_on_all_transports, ranks_may_test_crosswise, 2, 3),
    FORKED_TEST(a_split_moves_others, 2),
    FORKED_TEST(what_fails_meanwhile_fails_alone, 2, 3),
    FORKED_TEST(the_end_of_one_moves_others, 2),
    FORKED_TEST(who_waits_sleeps_whatever_is_in_flight, 2),
    FORKED_TEST_BY(test_on_all_transports, a_thread_moves_what_others_have_started, 2, 3),
    FORKED_TEST_BY(test_on_all_transports, threads_share_a_process_with_a_communicator_each, 2, 3),
};
RUN_TESTS(tests)

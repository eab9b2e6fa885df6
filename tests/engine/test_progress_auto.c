/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* LCOMM_PROGRESS=auto: a thread only where there are processors for it, and only from
 * the first call that does not block. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "libcomm/engine/engine.h"
#include "libcomm/include/libcomm_interpose.h"
#include "libcomm/topo/processors.h"
#include "tests/support/forked_comm.h"
#include "tests/support/process_counts.h"
#include "tests/support/unit_tests.h"

enum { COUNT = 50000 };

static float values[COUNT], gradient[COUNT];

static lcomm_comm *make(forked *self, lcomm_progress_mode mode) {
  lcomm_config config = forked_config(mode);
  return forked_create(self, &config);
}

/* As on a machine with processors to spare. */
static lcomm_comm *make_wanting(forked *self) {
  lcomm_comm *comm = make(self, LCOMM_PROGRESS_AUTO);
  comm->progress.wants_thread = true;
  return comm;
}

/* Calls that block, of every kind. */
static void block(forked *self, lcomm_comm *comm) {
  lcomm_residual *residual = NULL;
  lcomm_comm *part = NULL;
  forked_fine(self, comm, lcomm_barrier(comm), "a barrier");
  forked_fine(self, comm, lcomm_allreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_MAX),
              "a sum");
  forked_fine(self, comm, lcomm_broadcast(comm, values, COUNT, LCOMM_FLOAT32, 0), "a broadcast");
  forked_fine(self, comm, lcomm_residual_create(comm, COUNT, LCOMM_SUM, &residual), "a residual");
  forked_fine(self, comm, lcomm_allreduce_ef(residual, values, values), "a sum with it");
  forked_fine(self, comm, lcomm_allreduce_flush(residual, values, values), "a flush");
  forked_fine(self, comm, lcomm_split(comm, 0, 0, NULL, &part), "a split");
  forked_require(self, part->settings.progress == LCOMM_PROGRESS_AUTO,
                 "a part is asked for the same");
  forked_destroy(self, part);
}

static void calls_that_block_start_no_thread(forked *self) {
  int threads = count_threads();
  lcomm_comm *comm = make_wanting(self);
  block(self, comm);
  forked_require(self, !comm->progress.thread && threads_fall_to(threads), "%d threads, then %d",
                 threads, count_threads());
  forked_destroy(self, comm);
}

/* Until it is over, with no call that moves anything. */
static void await_one(forked *self, lcomm_comm *comm, uint64_t operations) {
  enum { LOOKS = 50000, LOOK_US = 1000 };
  lcomm_stats stats = {0};
  for (int i = 0; i < LOOKS && stats.operations < operations; i++) {
    usleep(LOOK_US);
    lcomm_stats_get(comm, &stats);
  }
  forked_require(self, stats.operations >= operations, "nobody moves it: %llu of %llu are over",
                 (unsigned long long)stats.operations, (unsigned long long)operations);
}

static void the_first_call_that_does_not_block_starts_it(forked *self) {
  lcomm_request request;
  lcomm_comm *comm = make_wanting(self);
  block(self, comm);
  lcomm_stats stats;
  lcomm_stats_get(comm, &stats);
  for (int i = 0; i < COUNT; i++) {
    values[i] = (float)self->rank;
  }
  forked_fine(self, comm,
              lcomm_iallreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_MAX, &request),
              "a start");
  forked_require(self, comm->progress.thread != NULL,
                 "the first call that does not block starts no thread");
  await_one(self, comm, stats.operations + 1);
  forked_fine(self, comm, lcomm_wait(comm, &request), "the wait");
  forked_require(self, values[COUNT - 1] == (float)(self->size - 1), "the largest is %g",
                 (double)values[COUNT - 1]);
  block(self, comm);
  forked_destroy(self, comm);
}

static void a_tensor_starts_it(forked *self) {
  lcomm_tensor *tensor = NULL;
  lcomm_comm *comm = make_wanting(self);
  forked_fine(
      self, comm,
      lcomm_tensor_add(comm, "gradient", gradient, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &tensor),
      "a tensor");
  forked_require(self, comm->progress.thread != NULL, "a tensor starts no thread");
  lcomm_stats stats;
  for (int step = 0; step < 3; step++) {
    lcomm_stats_get(comm, &stats);
    forked_fine(self, comm, lcomm_tensor_ready(comm, tensor), "ready");
    if (step > 0) { /* the first one compares the tensors first */
      await_one(self, comm, stats.operations + 1);
    }
    forked_fine(self, comm, lcomm_tensors_wait(comm), "the step");
  }
  forked_destroy(self, comm);
}

/* One that is busy when another gets its thread, and the other way round. */
static void it_starts_while_others_are_moved(forked *self) {
  enum { ROUNDS = 10 };
  lcomm_request one, other;
  for (int round = 0; round < ROUNDS; round++) {
    lcomm_comm *a = make(self, LCOMM_PROGRESS_CALLS), *b = make_wanting(self);
    forked_fine(self, a, lcomm_iallreduce(a, values, values, COUNT, LCOMM_FLOAT32, LCOMM_MAX, &one),
                "a start");
    forked_fine(self, b,
                lcomm_iallreduce(b, gradient, gradient, COUNT, LCOMM_FLOAT32, LCOMM_MAX, &other),
                "a start with a thread");
    if (self->rank == 0) {
      forked_fine(self, a, lcomm_wait(a, &one), "a wait");
      forked_fine(self, b, lcomm_wait(b, &other), "a wait");
    } else {
      forked_fine(self, b, lcomm_wait(b, &other), "a wait");
      forked_fine(self, a, lcomm_wait(a, &one), "a wait");
    }
    forked_destroy(self, a);
    forked_destroy(self, b);
  }
}

/* What all ranks find is what they do. */
static void decide(forked *self) {
  lcomm_processors all[FORKED_MAX];
  lcomm_comm *comm = make(self, LCOMM_PROGRESS_DEFAULT);
  lcomm_processors_self(comm->identity.number, &all[self->rank]);
  all[self->rank].host = 1;
  for (int i = 0; i < self->size; i++) {
    all[i] = all[self->rank];
  }
  bool enough = lcomm_processors_share(all, self->size, self->rank) >= LCOMM_PROCESSORS_ENOUGH;
  forked_require(self, comm->settings.progress == LCOMM_PROGRESS_AUTO, "the default is not auto");
  forked_require(self, comm->progress.wants_thread == (enough && self->size > 1),
                 "a thread is wanted: %d, enough processors: %d", comm->progress.wants_thread,
                 enough);
  forked_require(self, !comm->progress.thread, "a thread before there is anything to do");
  forked_destroy(self, comm);
}

static void processors_decide(void **state) {
  (void)state;
  unsetenv("LCOMM_PROGRESS");
  forked_run(2, decide);
  forked_run(5, decide);
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(calls_that_block_start_no_thread, 3),
    FORKED_TEST(the_first_call_that_does_not_block_starts_it, 2, 3),
    FORKED_TEST(a_tensor_starts_it, 2),
    FORKED_TEST(it_starts_while_others_are_moved, 2),
    cmocka_unit_test(processors_decide),
};
RUN_TESTS(tests)

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
#include "tests/support/forked.h"

enum { COUNT = 50000 };

static float values[COUNT], gradient[COUNT];

static lcomm_comm *make(forked *self, lcomm_progress_mode mode) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.policy = "net=int8+ef min=1";
  config.transport = "shm";
  config.timeout_s = 60;
  config.nodes = 2;
  config.progress = mode;
  lcomm_status status = lcomm_create(&self->boot, &config, &comm);
  forked_require(self, status == LCOMM_OK, "no communicator: %s", lcomm_last_error(NULL));
  return comm;
}

/* As on a machine with processors to spare. */
static lcomm_comm *make_wanting(forked *self) {
  lcomm_comm *comm = make(self, LCOMM_PROGRESS_AUTO);
  comm->wants_progress_thread = true;
  return comm;
}

static void fine(forked *self, const lcomm_comm *comm, lcomm_status status, const char *what) {
  forked_require(self, status == LCOMM_OK, "%s: %s", what, lcomm_last_error(comm));
}

static int count_threads(void) {
  char line[128];
  int threads = -1;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && threads < 0 && fgets(line, sizeof(line), file)) {
    sscanf(line, "Threads: %d", &threads);
  }
  if (file) {
    fclose(file);
  }
  return threads;
}

static void end(forked *self, lcomm_comm *comm) {
  lcomm_status status = lcomm_destroy(comm);
  forked_require(self, status == LCOMM_OK, "the end: %s", lcomm_status_name(status));
}

/* Calls that block, of every kind. */
static void block(forked *self, lcomm_comm *comm) {
  lcomm_residual *residual = NULL;
  lcomm_comm *part = NULL;
  fine(self, comm, lcomm_barrier(comm), "a barrier");
  fine(self, comm, lcomm_allreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_MAX), "a sum");
  fine(self, comm, lcomm_broadcast(comm, values, COUNT, LCOMM_FLOAT32, 0), "a broadcast");
  fine(self, comm, lcomm_residual_create(comm, COUNT, LCOMM_SUM, &residual), "a residual");
  fine(self, comm, lcomm_allreduce_ef(residual, values, values), "a sum with it");
  fine(self, comm, lcomm_allreduce_flush(residual, values, values), "a flush");
  fine(self, comm, lcomm_split(comm, 0, 0, NULL, &part), "a split");
  forked_require(self, part->settings.progress == LCOMM_PROGRESS_AUTO,
                 "a part is asked for the same");
  end(self, part);
}

static void only_block(forked *self) {
  int threads = count_threads();
  lcomm_comm *comm = make_wanting(self);
  block(self, comm);
  forked_require(self, !comm->progress_thread && count_threads() == threads, "%d threads, then %d",
                 threads, count_threads());
  end(self, comm);
}

static void calls_that_block_start_no_thread(void **state) {
  (void)state;
  forked_run(3, only_block);
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

static void start_one(forked *self) {
  lcomm_request request;
  lcomm_comm *comm = make_wanting(self);
  block(self, comm);
  lcomm_stats stats;
  lcomm_stats_get(comm, &stats);
  for (int i = 0; i < COUNT; i++) {
    values[i] = (float)self->rank;
  }
  fine(self, comm,
       lcomm_iallreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_MAX, &request),
       "a start");
  forked_require(self, comm->progress_thread != NULL,
                 "the first call that does not block starts no thread");
  await_one(self, comm, stats.operations + 1);
  fine(self, comm, lcomm_wait(comm, &request), "the wait");
  forked_require(self, values[COUNT - 1] == (float)(self->size - 1), "the largest is %g",
                 (double)values[COUNT - 1]);
  block(self, comm);
  end(self, comm);
}

static void the_first_call_that_does_not_block_starts_it(void **state) {
  (void)state;
  forked_run(2, start_one);
  forked_run(3, start_one);
}

static void add_tensors(forked *self) {
  lcomm_tensor *tensor = NULL;
  lcomm_comm *comm = make_wanting(self);
  fine(self, comm,
       lcomm_tensor_add(comm, "gradient", gradient, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &tensor),
       "a tensor");
  forked_require(self, comm->progress_thread != NULL, "a tensor starts no thread");
  lcomm_stats stats;
  for (int step = 0; step < 3; step++) {
    lcomm_stats_get(comm, &stats);
    fine(self, comm, lcomm_tensor_ready(comm, tensor), "ready");
    if (step > 0) { /* the first one compares the tensors first */
      await_one(self, comm, stats.operations + 1);
    }
    fine(self, comm, lcomm_tensors_wait(comm), "the step");
  }
  end(self, comm);
}

static void a_tensor_starts_it(void **state) {
  (void)state;
  forked_run(2, add_tensors);
}

/* One that is busy when another gets its thread, and the other way round. */
static void start_beside_another(forked *self) {
  enum { ROUNDS = 10 };
  lcomm_request one, other;
  for (int round = 0; round < ROUNDS; round++) {
    lcomm_comm *a = make(self, LCOMM_PROGRESS_CALLS), *b = make_wanting(self);
    fine(self, a, lcomm_iallreduce(a, values, values, COUNT, LCOMM_FLOAT32, LCOMM_MAX, &one),
         "a start");
    fine(self, b, lcomm_iallreduce(b, gradient, gradient, COUNT, LCOMM_FLOAT32, LCOMM_MAX, &other),
         "a start with a thread");
    if (self->rank == 0) {
      fine(self, a, lcomm_wait(a, &one), "a wait");
      fine(self, b, lcomm_wait(b, &other), "a wait");
    } else {
      fine(self, b, lcomm_wait(b, &other), "a wait");
      fine(self, a, lcomm_wait(a, &one), "a wait");
    }
    end(self, a);
    end(self, b);
  }
}

static void it_starts_while_others_are_moved(void **state) {
  (void)state;
  forked_run(2, start_beside_another);
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
  forked_require(self, comm->wants_progress_thread == (enough && self->size > 1),
                 "a thread is wanted: %d, enough processors: %d", comm->wants_progress_thread,
                 enough);
  forked_require(self, !comm->progress_thread, "a thread before there is anything to do");
  end(self, comm);
}

static void processors_decide(void **state) {
  (void)state;
  unsetenv("LCOMM_PROGRESS");
  forked_run(2, decide);
  forked_run(5, decide);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(calls_that_block_start_no_thread),
      cmocka_unit_test(the_first_call_that_does_not_block_starts_it),
      cmocka_unit_test(a_tensor_starts_it),
      cmocka_unit_test(it_starts_while_others_are_moved),
      cmocka_unit_test(processors_decide),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

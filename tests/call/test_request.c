/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Requests and tensors belong to one communicator; tests wait, too. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/engine.h"
#include "tests/support/forked_comm.h"
#include "tests/support/unit_tests.h"

enum { COUNT = 100000 };

static float values[COUNT], others[COUNT];

static lcomm_comm *make(forked *self, lcomm_progress_mode mode, double timeout_s) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = "";
  config.transport = "shm";
  config.timeout_s = timeout_s;
  config.progress = mode;
  return forked_create(self, &config);
}

/* ------------------------------------------------------------------ owners */

/* Refused, by a sentence that names both. */
static void not_here(forked *self, lcomm_comm *here, lcomm_comm *there, lcomm_status status) {
  char one[64], other[64];
  const char *sentence = lcomm_last_error(here);
  snprintf(one, sizeof(one), "communicator %u (rank %d", here->identity.number, lcomm_rank(here));
  snprintf(other, sizeof(other), "communicator %u (rank %d", there->identity.number,
           lcomm_rank(there));
  forked_require(self, status == LCOMM_ERR_ARGUMENT, "it is %s: %s", lcomm_status_name(status),
                 sentence);
  forked_require(self, strstr(sentence, one) && strstr(sentence, other), "it says: %s", sentence);
}

static void mistake_one_for_another(forked *self, lcomm_progress_mode mode) {
  int done = 7;
  lcomm_request request;
  lcomm_comm *mine = make(self, mode, 60), *other = NULL;
  forked_fine(self, mine, lcomm_split(mine, 0, -self->rank, NULL, &other), "a split");
  for (int i = 0; i < COUNT; i++) {
    values[i] = 1;
  }
  forked_fine(self, mine,
              lcomm_iallreduce(mine, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &request),
              "a start");
  not_here(self, other, mine, lcomm_wait(other, &request));
  not_here(self, other, mine, lcomm_test(other, &request, &done));
  forked_require(self, done == 7, "a test that is refused says nothing of the operation");
  forked_fine(self, mine, lcomm_wait(mine, &request), "the wait where it belongs");
  forked_require(self, values[COUNT - 1] == (float)self->size, "the sum is %g",
                 (double)values[COUNT - 1]);
  forked_fine(self, other, lcomm_wait(other, &request), "one that is over is nobody's");
  forked_fine(self, other, lcomm_allreduce(other, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM),
              "the other one goes on");
  forked_require(self, lcomm_destroy(other) == LCOMM_OK && lcomm_destroy(mine) == LCOMM_OK,
                 "both end well");
}

static void a_request_is_refused_elsewhere_in_calls(forked *self) {
  mistake_one_for_another(self, LCOMM_PROGRESS_CALLS);
}

static void a_request_is_refused_elsewhere_beside_a_thread(forked *self) {
  mistake_one_for_another(self, LCOMM_PROGRESS_THREAD);
}

static void a_tensor_is_refused_elsewhere(forked *self) {
  lcomm_tensor *tensor = NULL;
  lcomm_comm *mine = make(self, LCOMM_PROGRESS_CALLS, 60);
  lcomm_comm *other = make(self, LCOMM_PROGRESS_CALLS, 60);
  forked_fine(self, mine,
              lcomm_tensor_add(mine, "w", values, 10, LCOMM_FLOAT32, LCOMM_SUM, &tensor),
              "a tensor");
  not_here(self, other, mine, lcomm_tensor_ready(other, tensor));
  not_here(self, other, mine, lcomm_tensor_ready_on_stream(other, tensor, NULL));
  not_here(self, other, mine, lcomm_tensor_scale(other, tensor, 2, 1));
  not_here(self, other, mine, lcomm_tensor_residual(other, tensor, others));
  forked_fine(self, mine, lcomm_tensor_ready(mine, tensor), "ready where it belongs");
  forked_fine(self, mine, lcomm_tensors_wait(mine), "the step");
  forked_fine(self, other, lcomm_tensors_wait(other), "the other one has none");
  forked_require(self, lcomm_destroy(other) == LCOMM_OK && lcomm_destroy(mine) == LCOMM_OK,
                 "both end well");
}

/* ------------------------------------------------------------------ patience */

static const double PATIENCE_S = 3, LIMIT_S = 60;

/* Rank 1 stops; rank 0 only tests. */
static void test_what_never_ends(forked *self, lcomm_progress_mode mode) {
  int done = 0;
  lcomm_request request;
  lcomm_comm *comm = make(self, mode, PATIENCE_S);
  forked_fine(self, comm, lcomm_allreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM),
              "a sum");
  forked_barrier(self);
  if (self->rank == 1) {
    forked_barrier(self); /* outside any call */
    _exit(EXIT_SUCCESS);
  }
  double begin_s = lcomm_clock_s();
  lcomm_status status =
      lcomm_iallreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &request);
  forked_fine(self, comm, status, "a start");
  while (!done && lcomm_clock_s() - begin_s < LIMIT_S) {
    status = lcomm_test(comm, &request, &done);
    usleep(1000);
  }
  double after_s = lcomm_clock_s() - begin_s;
  forked_require(self, done && status == LCOMM_ERR_TIMEOUT, "after %g s it is %s, done: %d",
                 after_s, lcomm_status_name(status), done);
  forked_require(self, after_s >= PATIENCE_S, "after %g s patience is lost", after_s);
  forked_require(self, strstr(lcomm_last_error(comm), "rank 1") != NULL, "it says: %s",
                 lcomm_last_error(comm));
  forked_barrier(self);
  lcomm_destroy(comm);
}

static void tests_in_a_loop_have_patience_in_calls(forked *self) {
  test_what_never_ends(self, LCOMM_PROGRESS_CALLS);
}

static void tests_in_a_loop_have_patience_beside_a_thread(forked *self) {
  test_what_never_ends(self, LCOMM_PROGRESS_THREAD);
}

/* A rank that does not look for longer than the time-out has made nobody late, nor has
 * a peer that comes in time after the first look. */
static void patience_begins_with_the_first_test(forked *self) {
  int done = 0;
  lcomm_request request;
  lcomm_status status = LCOMM_OK;
  lcomm_comm *comm = make(self, LCOMM_PROGRESS_CALLS, PATIENCE_S);
  forked_fine(self, comm, lcomm_barrier(comm), "a barrier");
  if (self->rank == 0) {
    forked_fine(self, comm,
                lcomm_iallreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &request),
                "a start");
    usleep((useconds_t)(1.5e6 * PATIENCE_S));
    forked_barrier(self);
    while (!done && status == LCOMM_OK) {
      status = lcomm_test(comm, &request, &done);
    }
    forked_fine(self, comm, status, "a sum that was looked at late");
  } else {
    forked_barrier(self);
    forked_fine(self, comm, lcomm_allreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM),
                "the sum");
  }
  forked_require(self, lcomm_destroy(comm) == LCOMM_OK, "it ends well");
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(a_request_is_refused_elsewhere_in_calls, 1, 2, 3),
    FORKED_TEST(a_request_is_refused_elsewhere_beside_a_thread, 1, 2, 3),
    FORKED_TEST(a_tensor_is_refused_elsewhere, 2),
    FORKED_TEST(tests_in_a_loop_have_patience_in_calls, 2),
    FORKED_TEST(tests_in_a_loop_have_patience_beside_a_thread, 2),
    FORKED_TEST(patience_begins_with_the_first_test, 2),
};
RUN_TESTS(tests)

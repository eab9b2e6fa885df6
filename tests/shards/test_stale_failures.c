/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Steps that go on without the newest results, and a rank that is silent or dead. */

#include <string.h>

#include "tests/support/forked_comm.h"
#include "tests/support/unit_tests.h"

enum { COUNT = 5000, RANKS = 4, VICTIM = 2, STEPS_MOST = 1000 };

typedef struct training {
  lcomm_comm *comm;
  lcomm_tensor *tensor;
  float data[COUNT];
} training;

static lcomm_status draw_all(training *it, lcomm_status (*hand_out)(lcomm_comm *, int *)) {
  lcomm_status status = LCOMM_OK;
  for (int there = 1; there && status == LCOMM_OK;) {
    status = hand_out(it->comm, &there);
  }
  return status;
}

static lcomm_status step(training *it) {
  lcomm_status status = lcomm_tensor_ready(it->comm, it->tensor);
  status = status == LCOMM_OK ? lcomm_tensors_wait(it->comm) : status;
  return status == LCOMM_OK ? draw_all(it, lcomm_tensors_next) : status;
}

/* All ranks have made the first step. */
static training begin(forked *self, const char *policy) {
  static training it;
  lcomm_config config = forked_config(LCOMM_PROGRESS_CALLS);
  config.policy = policy;
  config.timeout_s = 5;
  it.comm = forked_create(self, &config);
  forked_fine(self, it.comm,
              lcomm_tensor_add(it.comm, "t", it.data, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &it.tensor),
              "a tensor");
  forked_fine(self, it.comm, step(&it), "the first step");
  forked_fine(self, it.comm, draw_all(&it, lcomm_tensors_sync), "its result");
  forked_barrier(self);
  return it;
}

/* All go on for some steps, and no farther. */
static void go_on_until_it_fails(forked *self, training *it, const char *word) {
  lcomm_status status = LCOMM_OK;
  int steps = 0;
  for (; status == LCOMM_OK && steps < STEPS_MOST; steps++) {
    status = step(it);
  }
  const char *why = lcomm_last_error(it->comm);
  forked_require(self, status == LCOMM_ERR_TIMEOUT || status == LCOMM_ERR_TRANSPORT,
                 "after %d steps: %s", steps, lcomm_status_name(status));
  forked_require(self, strstr(why, word) != NULL, "the sentence says something else: %s", why);
  forked_require(self, step(it) == status, "the failure does not stay");
}

static void a_dead_rank_ends_the_training_of_all(forked *self) {
  training it = begin(self, "net=int8+ef min=1 stale=2 late=0");
  if (self->rank == VICTIM) {
    forked_die();
  }
  go_on_until_it_fails(self, &it, "rank 2");
  (void)lcomm_destroy(it.comm);
}

static void a_dead_rank_ends_a_training_that_drops_what_is_late(forked *self) {
  training it = begin(self, "net=int8+ef min=1 stale=2:drop late=0");
  if (self->rank == VICTIM) {
    forked_die();
  }
  go_on_until_it_fails(self, &it, "rank 2");
  (void)lcomm_destroy(it.comm);
}

static void a_silent_rank_is_named_on_all(forked *self) {
  training it = begin(self, "net=int8+ef min=1 stale=2 late=0");
  if (self->rank == VICTIM) {
    forked_barrier(self);
    forked_require(self, step(&it) == LCOMM_ERR_TIMEOUT, "the silent rank is not told");
    (void)lcomm_destroy(it.comm);
    return;
  }
  go_on_until_it_fails(self, &it, "without which no sum with stale=2 can go on");
  forked_barrier(self);
  (void)lcomm_destroy(it.comm);
}

/* The others wait for a step that it does not make. */
static void a_rank_that_makes_fewer_steps_is_named_in_sync(forked *self) {
  training it = begin(self, "net=none stale=2 late=0");
  lcomm_status status = self->rank == VICTIM ? LCOMM_OK : step(&it);
  forked_fine(self, it.comm, status, "a step that does not wait");
  status = draw_all(&it, lcomm_tensors_sync);
  const char *why = lcomm_last_error(it.comm);
  forked_require(self, status == LCOMM_ERR_TIMEOUT, "%s: %s", lcomm_status_name(status), why);
  forked_require(self, strstr(why, "rank 2") != NULL, "another one is named: %s", why);
  (void)lcomm_destroy(it.comm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FORKED_TEST_DYING(a_dead_rank_ends_the_training_of_all, RANKS, VICTIM),
      FORKED_TEST_DYING(a_dead_rank_ends_a_training_that_drops_what_is_late, RANKS, VICTIM),
      FORKED_TEST(a_silent_rank_is_named_on_all, RANKS),
      FORKED_TEST(a_rank_that_makes_fewer_steps_is_named_in_sync, RANKS),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

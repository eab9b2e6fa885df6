/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sums that do not wait for the slowest rank, and a rank that is silent or dead. */

#include <string.h>

#include "tests/support/forked_comm.h"
#include "tests/support/unit_tests.h"

enum { COUNT = 5000, RANKS = 4, VICTIM = 2, STEPS_MOST = 1000 };

typedef struct training {
  lcomm_comm *comm;
  lcomm_tensor *tensor;
  float data[COUNT];
} training;

/* All ranks are in the first step. */
static training begin(forked *self) {
  static training it;
  lcomm_config config = forked_config(LCOMM_PROGRESS_CALLS);
  config.policy = "net=int8+ef min=1 quorum=3 late=0";
  config.timeout_s = 5;
  it.comm = forked_create(self, &config);
  return it;
}

static lcomm_status step(training *it) {
  lcomm_status status = lcomm_tensor_ready(it->comm, it->tensor);
  return status == LCOMM_OK ? lcomm_tensors_wait(it->comm) : status;
}

static void make_first_step(forked *self, training *it) {
  forked_fine(
      self, it->comm,
      lcomm_tensor_add(it->comm, "t", it->data, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &it->tensor),
      "a tensor");
  forked_fine(self, it->comm, step(it), "the first step");
  forked_barrier(self);
}

/* Owners keep results for a rank that is late, but not without end. */
static void go_on_until_it_fails(forked *self, training *it) {
  lcomm_status status = LCOMM_OK;
  int steps = 0;
  for (; status == LCOMM_OK && steps < STEPS_MOST; steps++) {
    status = step(it);
  }
  const char *why = lcomm_last_error(it->comm);
  forked_require(self, status == LCOMM_ERR_TIMEOUT || status == LCOMM_ERR_TRANSPORT,
                 "after %d steps: %s", steps, lcomm_status_name(status));
  forked_require(self, strstr(why, "rank 2") != NULL, "the sentence names another rank: %s", why);
  forked_require(self, step(it) == status, "the failure does not stay");
  (void)lcomm_destroy(it->comm);
}

static void a_dead_rank_ends_the_training_of_all(forked *self) {
  training it = begin(self);
  make_first_step(self, &it);
  if (self->rank == VICTIM) {
    forked_die();
  }
  go_on_until_it_fails(self, &it);
}

/* It finds the others' verdict when it comes. */
static void a_silent_rank_is_named_on_all(forked *self) {
  training it = begin(self);
  make_first_step(self, &it);
  if (self->rank == VICTIM) {
    forked_barrier(self);
    forked_require(self, step(&it) == LCOMM_ERR_TIMEOUT, "the silent rank is not told");
    (void)lcomm_destroy(it.comm);
    return;
  }
  lcomm_status status = LCOMM_OK;
  for (int steps = 0; status == LCOMM_OK && steps < STEPS_MOST; steps++) {
    status = step(&it);
  }
  const char *why = lcomm_last_error(it.comm);
  forked_require(self, status == LCOMM_ERR_TIMEOUT, "%s: %s", lcomm_status_name(status), why);
  forked_require(self, strstr(why, "wait for rank 2") && strstr(why, "quorum=3"), "%s", why);
  forked_barrier(self);
  (void)lcomm_destroy(it.comm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FORKED_TEST_DYING(a_dead_rank_ends_the_training_of_all, RANKS, VICTIM),
      FORKED_TEST(a_silent_rank_is_named_on_all, RANKS),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sums with quorum= over nodes of several ranks, and ranks, nodes and collectors that are silent,
 * stopped or dead: all others end, and nobody else is named. */

#include <signal.h>
#include <string.h>

#include "tests/support/forked_comm.h"
#include "tests/support/unit_tests.h"

/* Two nodes of three. Of the second one VICTIM collects pieces of rank 1. */
enum { COUNT = 5000, RANKS = 6, NODE = 3, VICTIM = 4, STEPS_MOST = 1000 };

typedef struct training {
  lcomm_comm *comm;
  lcomm_tensor *tensor;
  float data[COUNT];
} training;

static lcomm_status step(training *it) {
  lcomm_status status = lcomm_tensor_ready(it->comm, it->tensor);
  return status == LCOMM_OK ? lcomm_tensors_wait(it->comm) : status;
}

/* All ranks have made the first step. */
static training *begin(forked *self, const char *policy) {
  static training it;
  lcomm_config config = forked_config(LCOMM_PROGRESS_CALLS);
  config.policy = policy;
  config.timeout_s = 2;
  it.comm = forked_create(self, &config);
  forked_fine(self, it.comm,
              lcomm_tensor_add(it.comm, "t", it.data, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &it.tensor),
              "a tensor");
  forked_fine(self, it.comm, step(&it), "the first step");
  forked_barrier(self);
  return &it;
}

static void end_with(forked *self, training *it, const char *name) {
  lcomm_status status = LCOMM_OK;
  for (int steps = 0; status == LCOMM_OK && steps < STEPS_MOST; steps++) {
    status = step(it);
  }
  const char *why = lcomm_last_error(it->comm);
  forked_require(self, status == LCOMM_ERR_TIMEOUT || status == LCOMM_ERR_TRANSPORT, "%s: %s",
                 lcomm_status_name(status), why);
  forked_require(self, strstr(why, name) != NULL, "the sentence names another rank: %s", why);
  forked_require(self, step(it) == status, "the failure does not stay");
}

/* Its thread serves on. All find the verdict, also those that come to it later. */
static void be_silent_and_find(forked *self, const char *policy, int first, int last,
                               const char *name) {
  training *it = begin(self, policy);
  if (self->rank >= first && self->rank <= last) {
    forked_barrier(self);
    end_with(self, it, name);
  } else {
    end_with(self, it, name);
    forked_barrier(self);
  }
  (void)lcomm_destroy(it->comm);
}

static void a_silent_rank_without_which_no_sum_goes_on_is_named(forked *self) {
  be_silent_and_find(self, "net=int8+ef min=1 quorum=100%", VICTIM, VICTIM, "wait for rank 4");
}

static void a_silent_rank_is_named_when_it_is_far_behind(forked *self) {
  be_silent_and_find(self, "net=int8+ef min=1 quorum=5 late=0", VICTIM, VICTIM, "wait for rank 4");
}

/* Any of its three, all of which are. */
static void a_silent_node_is_named_by_one_of_its_ranks(forked *self) {
  const char *policy = "net=int8+ef min=1 quorum=3 late=0";
  training *it = begin(self, policy);
  if (self->rank >= NODE) {
    forked_barrier(self);
  }
  end_with(self, it, "without which no sum");
  const char *why = lcomm_last_error(it->comm);
  forked_require(self,
                 strstr(why, "wait for rank 3") || strstr(why, "wait for rank 4") ||
                     strstr(why, "wait for rank 5"),
                 "%s", why);
  if (self->rank < NODE) {
    forked_barrier(self);
  }
  (void)lcomm_destroy(it->comm);
}

/* Its thread does not serve either, so what its node contributes to pieces of rank 1 is stuck. */
static void stop_and_find(forked *self, const char *policy) {
  training *it = begin(self, policy);
  if (self->rank == VICTIM) {
    raise(SIGSTOP);
    lcomm_status status = LCOMM_OK;
    for (int steps = 0; status == LCOMM_OK && steps < STEPS_MOST; steps++) {
      status = step(it);
    }
    forked_require(self, status != LCOMM_OK, "a rank that was stopped goes on alone");
    (void)lcomm_destroy(it->comm);
    return;
  }
  end_with(self, it, "rank 4");
  if (self->rank == 0) {
    (void)kill((pid_t)self->identities[VICTIM].pid, SIGCONT);
  }
  (void)lcomm_destroy(it->comm);
}

static void a_stopped_rank_is_named_where_all_are_needed(forked *self) {
  stop_and_find(self, "net=int8+ef min=1 quorum=100%");
}

static void a_stopped_rank_is_named_where_it_collects(forked *self) {
  stop_and_find(self, "net=int8+ef min=1 quorum=5 late=0");
}

static void a_dead_rank_ends_the_training_of_all(forked *self) {
  training *it = begin(self, "net=topk:0.05+ef min=1 quorum=5 late=0");
  if (self->rank == VICTIM) {
    forked_die();
  }
  end_with(self, it, "rank 4");
  (void)lcomm_destroy(it->comm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FORKED_TEST(a_silent_rank_without_which_no_sum_goes_on_is_named, RANKS),
      FORKED_TEST(a_silent_rank_is_named_when_it_is_far_behind, RANKS),
      FORKED_TEST(a_silent_node_is_named_by_one_of_its_ranks, RANKS),
      FORKED_TEST(a_stopped_rank_is_named_where_all_are_needed, RANKS),
      FORKED_TEST(a_stopped_rank_is_named_where_it_collects, RANKS),
      FORKED_TEST_DYING(a_dead_rank_ends_the_training_of_all, RANKS, VICTIM),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Calls with a residual that do not wait for the slowest rank, and ranks that are silent, dead or
 * in other calls. */

#include <string.h>

#include "libcomm/include/libcomm_residuals.h"
#include "tests/support/forked_comm.h"
#include "tests/support/unit_tests.h"

enum { COUNT = 5000, RANKS = 4, VICTIM = 2, CALLS_MOST = 1000 };

typedef struct training {
  lcomm_comm *comm;
  lcomm_residual *residual, *other;
  bool blocks;
  float data[COUNT];
} training;

/* All ranks have the vectors of both residuals. */
static training *begin(forked *self, const char *policy, bool blocks) {
  static training it;
  lcomm_config config = forked_config(LCOMM_PROGRESS_CALLS);
  config.policy = policy;
  config.timeout_s = 5;
  it.comm = forked_create(self, &config);
  it.blocks = blocks;
  lcomm_residual **made[2] = {&it.residual, &it.other};
  for (int i = 0; i < 2; i++) {
    forked_fine(self, it.comm, lcomm_residual_create(it.comm, COUNT, LCOMM_SUM, made[i]), "make");
    forked_fine(self, it.comm, lcomm_allreduce_ef(*made[i], it.data, it.data), "the first call");
  }
  forked_barrier(self);
  return &it;
}

static lcomm_status call(training *it, lcomm_residual *residual) {
  lcomm_request request;
  if (it->blocks) {
    return lcomm_allreduce_ef(residual, it->data, it->data);
  }
  lcomm_status status = lcomm_iallreduce_ef(residual, it->data, it->data, &request);
  for (int done = 0; status == LCOMM_OK && !done;) {
    status = lcomm_test(it->comm, &request, &done);
  }
  return status;
}

static lcomm_status call_until_it_fails(training *it) {
  lcomm_status status = LCOMM_OK;
  for (int calls = 0; status == LCOMM_OK && calls < CALLS_MOST; calls++) {
    status = call(it, it->residual);
  }
  return status;
}

/* Owners keep results for a rank that is late, but not without end. */
static void require_victim_named(forked *self, training *it) {
  lcomm_status status = call_until_it_fails(it);
  const char *why = lcomm_last_error(it->comm);
  forked_require(self, status == LCOMM_ERR_TIMEOUT || status == LCOMM_ERR_TRANSPORT, "%s: %s",
                 lcomm_status_name(status), why);
  forked_require(self, strstr(why, "rank 2") != NULL, "the sentence names another rank: %s", why);
  forked_require(self, call(it, it->residual) == status, "the failure does not stay");
  forked_require(self, lcomm_residual_destroy(it->residual) == LCOMM_OK, "it cannot be destroyed");
  (void)lcomm_destroy(it->comm);
}

static void die_among_calls(forked *self, bool blocks) {
  training *it = begin(self, "net=int8+ef min=1 quorum=3 late=0", blocks);
  if (self->rank == VICTIM) {
    forked_die();
  }
  require_victim_named(self, it);
}

static void a_dead_rank_ends_the_calls_of_all(forked *self) {
  die_among_calls(self, true);
}

static void a_dead_rank_ends_the_tests_of_all(forked *self) {
  die_among_calls(self, false);
}

/* It finds the others' verdict when it comes. */
static void be_silent_among_calls(forked *self, bool blocks) {
  training *it = begin(self, "net=int8+ef min=1 quorum=3 late=0", blocks);
  if (self->rank == VICTIM) {
    forked_barrier(self);
    forked_require(self, call(it, it->residual) == LCOMM_ERR_TIMEOUT, "it is not told");
    (void)lcomm_destroy(it->comm);
    return;
  }
  lcomm_status status = call_until_it_fails(it);
  const char *why = lcomm_last_error(it->comm);
  forked_require(self, status == LCOMM_ERR_TIMEOUT, "%s: %s", lcomm_status_name(status), why);
  forked_require(self, strstr(why, "wait for rank 2") && strstr(why, "quorum=3"), "%s", why);
  forked_barrier(self);
  (void)lcomm_destroy(it->comm);
}

static void a_silent_rank_is_named_on_all(forked *self) {
  be_silent_among_calls(self, true);
}

static void a_silent_rank_is_named_on_all_that_test(forked *self) {
  be_silent_among_calls(self, false);
}

static void require_a_rank_is_named(forked *self, const training *it, lcomm_status status) {
  const char *why = lcomm_last_error(it->comm);
  forked_require(self, status == LCOMM_ERR_TIMEOUT || status == LCOMM_ERR_MISMATCH, "%s: %s",
                 lcomm_status_name(status), why);
  forked_require(self, strstr(why, "rank ") != NULL, "no rank is named: %s", why);
}

/* A rank that makes another call is one that does not contribute, on all ranks alike. */
static void ranks_in_other_calls_end_with_a_sentence(forked *self) {
  training *it = begin(self, "net=int8+ef min=1 quorum=100%", true);
  float value = 1;
  lcomm_status status = self->rank == VICTIM
                            ? lcomm_allreduce(it->comm, &value, &value, 1, LCOMM_FLOAT32, LCOMM_SUM)
                            : call(it, it->residual);
  require_a_rank_is_named(self, it, status);
  (void)lcomm_destroy(it->comm);
}

static void ranks_that_flush_alone_end_with_a_sentence(forked *self) {
  training *it = begin(self, "net=int8+ef min=1 quorum=100%", true);
  lcomm_status status = self->rank == VICTIM
                            ? lcomm_allreduce_flush(it->residual, it->data, it->data)
                            : call(it, it->residual);
  require_a_rank_is_named(self, it, status);
  (void)lcomm_destroy(it->comm);
}

/* Residuals are known by their numbers, so nothing is mixed up where the order differs. */
static void another_order_of_residuals_is_no_other_sum(forked *self) {
  training *it = begin(self, "net=none quorum=3 late=0", true);
  lcomm_residual *order[2] = {it->residual, it->other};
  for (int round = 0; round < 4; round++) {
    for (int i = 0; i < 2; i++) {
      int k = self->rank == VICTIM ? 1 - i : i;
      for (int j = 0; j < COUNT; j++) {
        it->data[j] = (float)(1 + 10 * k);
      }
      forked_fine(self, it->comm, call(it, order[k]), "a call in another order");
      float least = (float)(3 * (1 + 10 * k)), most = (float)(4 * 4 * (1 + 10 * k));
      forked_require(self, it->data[7] >= least && it->data[7] <= most, "a sum is %g",
                     (double)it->data[7]);
    }
  }
  forked_barrier(self);
  forked_destroy(self, it->comm);
}

/* Others may be told before they begin. */
static void a_communicator_that_goes_with_a_call_under_way_fails(forked *self) {
  training *it = begin(self, "net=int8+ef min=1 quorum=100%", true);
  lcomm_request request;
  lcomm_status status = self->rank == VICTIM
                            ? call(it, it->residual)
                            : lcomm_iallreduce_ef(it->residual, it->data, it->data, &request);
  bool is_told = status == LCOMM_ERR_ABORTED;
  forked_require(self, is_told || (status == LCOMM_OK && self->rank != VICTIM), "%s: %s",
                 lcomm_status_name(status), lcomm_last_error(it->comm));
  forked_require(self, !is_told || strstr(lcomm_last_error(it->comm), "operations in flight"), "%s",
                 lcomm_last_error(it->comm));
  forked_require(self, lcomm_destroy(it->comm) == LCOMM_ERR_ABORTED, "it goes as if all was well");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FORKED_TEST_DYING(a_dead_rank_ends_the_calls_of_all, RANKS, VICTIM),
      FORKED_TEST_DYING(a_dead_rank_ends_the_tests_of_all, RANKS, VICTIM),
      FORKED_TEST(a_silent_rank_is_named_on_all, RANKS),
      FORKED_TEST(a_silent_rank_is_named_on_all_that_test, RANKS),
      FORKED_TEST(ranks_in_other_calls_end_with_a_sentence, RANKS),
      FORKED_TEST(ranks_that_flush_alone_end_with_a_sentence, RANKS),
      FORKED_TEST(another_order_of_residuals_is_no_other_sum, RANKS),
      FORKED_TEST(a_communicator_that_goes_with_a_call_under_way_fails, RANKS),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

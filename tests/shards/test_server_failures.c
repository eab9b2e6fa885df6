/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Servers and workers that die, are silent or end early: all ranks end, with one sentence. */

#include <string.h>

#include "tests/support/forked_comm.h"
#include "tests/support/unit_tests.h"

enum { COUNT = 20000, RANKS = 4, SERVER = 1, WORKER = 2, STEPS_MOST = 1000 };

typedef struct training {
  lcomm_comm *comm;
  lcomm_tensor *tensor;
  float data[COUNT];
} training;

/* Ranks 0 and SERVER serve. */
static training *begin_by(forked *self, const char *policy) {
  static training it;
  lcomm_config config = forked_config(LCOMM_PROGRESS_CALLS);
  config.policy = policy;
  config.timeout_s = 5;
  it.comm = forked_create(self, &config);
  forked_fine(self, it.comm,
              lcomm_tensor_add(it.comm, "t", it.data, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &it.tensor),
              "a tensor");
  return &it;
}

static training *begin(forked *self) {
  return begin_by(self, "net=int8+ef min=1 algo=servers servers=0,1");
}

static training *begin_stale(forked *self) {
  return begin_by(self, "net=int8+ef min=1 algo=servers servers=0,1 stale=2 late=0");
}

/* With what is handed out then. */
static lcomm_status step(training *it) {
  lcomm_status status = lcomm_tensor_ready(it->comm, it->tensor);
  status = status == LCOMM_OK ? lcomm_tensors_wait(it->comm) : status;
  for (int there = 1; there && status == LCOMM_OK;) {
    status = lcomm_tensors_next(it->comm, &there);
  }
  return status;
}

static lcomm_status make_steps(training *it) {
  lcomm_status status = LCOMM_OK;
  for (int steps = 0; status == LCOMM_OK && steps < STEPS_MOST; steps++) {
    status = step(it);
  }
  return status;
}

/* What a rank does until it fails. */
static lcomm_status go_on(training *it) {
  return lcomm_is_server(it->comm) ? lcomm_server_run(it->comm, NULL, NULL) : make_steps(it);
}

static void require_failure(forked *self, training *it, lcomm_status status, const char *word) {
  const char *why = lcomm_last_error(it->comm);
  forked_require(self, status != LCOMM_OK, "it does not fail");
  forked_require(self, strstr(why, word) != NULL, "%s: %s", lcomm_status_name(status), why);
  forked_require(self, go_on(it) == status, "the failure does not stay");
  (void)lcomm_destroy(it->comm);
}

static int die(void *context, const lcomm_server_piece *piece) {
  (void)context;
  if (piece->step == 3) {
    forked_die();
  }
  return 0;
}

static int pass_on(void *context, const lcomm_server_piece *piece) {
  (void)context;
  return piece->used == RANKS - 2 ? 0 : 1;
}

static void require_dead_server(forked *self, training *it) {
  lcomm_status status =
      !lcomm_is_server(it->comm)
          ? make_steps(it)
          : lcomm_server_run(it->comm, self->rank == SERVER ? die : pass_on, NULL);
  const char *why = lcomm_last_error(it->comm);
  forked_require(self, status == LCOMM_ERR_TRANSPORT || status == LCOMM_ERR_TIMEOUT, "%s: %s",
                 lcomm_status_name(status), why);
  forked_require(self, strstr(why, "rank 1") != NULL, "another rank is named: %s", why);
  (void)lcomm_destroy(it->comm);
}

static void a_dead_server_is_named_by_all(forked *self) {
  require_dead_server(self, begin(self));
}

static void a_dead_server_is_named_by_workers_that_go_on(forked *self) {
  require_dead_server(self, begin_stale(self));
}

static void require_dead_worker(forked *self, training *it) {
  if (self->rank == WORKER) {
    forked_fine(self, it->comm, step(it), "the first step");
    forked_die();
  }
  require_failure(self, it, go_on(it), "rank 2");
}

static void a_dead_worker_is_named_by_all(forked *self) {
  require_dead_worker(self, begin(self));
}

static void a_dead_worker_is_named_by_workers_that_go_on(forked *self) {
  require_dead_worker(self, begin_stale(self));
}

static void a_silent_worker_is_named_by_all(forked *self) {
  training *it = begin(self);
  if (self->rank == WORKER) {
    forked_fine(self, it->comm, step(it), "the first step");
    forked_barrier(self);
    require_failure(self, it, go_on(it), "wait for rank 2");
    return;
  }
  lcomm_status status = go_on(it);
  forked_require(self, strstr(lcomm_last_error(it->comm), "of 2 workers") != NULL, "%s",
                 lcomm_last_error(it->comm));
  forked_barrier(self);
  require_failure(self, it, status, "wait for rank 2");
}

/* It waits for the others, who wait for it. */
static void a_worker_that_ends_early_ends_in_an_error_on_all(forked *self) {
  training *it = begin(self);
  if (self->rank == WORKER) {
    forked_fine(self, it->comm, step(it), "the first step");
    lcomm_status status = lcomm_server_end(it->comm);
    forked_require(self, status != LCOMM_OK, "the end is one of all workers");
    (void)lcomm_destroy(it->comm);
    return;
  }
  lcomm_status status = go_on(it);
  forked_require(self, status != LCOMM_OK && strstr(lcomm_last_error(it->comm), "rank ") != NULL,
                 "%s", lcomm_last_error(it->comm));
  (void)lcomm_destroy(it->comm);
}

static int fail_later(void *context, const lcomm_server_piece *piece) {
  return piece->step == 2 ? *(const int *)context : 0;
}

static void an_update_that_fails_ends_all_with_its_sentence(forked *self) {
  static const int why = 17;
  training *it = begin(self);
  lcomm_server_update update = self->rank == SERVER ? fail_later : pass_on;
  void *context = (void *)(uintptr_t)&why;
  lcomm_status status =
      lcomm_is_server(it->comm) ? lcomm_server_run(it->comm, update, context) : make_steps(it);
  const char *sentence = lcomm_last_error(it->comm);
  forked_require(self, status == LCOMM_ERR_ABORTED, "%s: %s", lcomm_status_name(status), sentence);
  forked_require(self, strstr(sentence, "rank 1") && strstr(sentence, "failed with 17, in round 2"),
                 "%s", sentence);
  (void)lcomm_destroy(it->comm);
}

static void an_update_of_some_servers_is_a_mismatch(forked *self) {
  training *it = begin(self);
  lcomm_status status =
      self->rank == SERVER ? lcomm_server_run(it->comm, pass_on, NULL) : go_on(it);
  const char *sentence = lcomm_last_error(it->comm);
  forked_require(self, status == LCOMM_ERR_MISMATCH, "%s: %s", lcomm_status_name(status), sentence);
  forked_require(self, strstr(sentence, "1 of 2 servers") != NULL, "%s", sentence);
  (void)lcomm_destroy(it->comm);
}

/* Workers have made steps, and nobody serves them now. */
static void a_server_that_does_not_serve_is_named(forked *self) {
  training *it = begin(self);
  lcomm_status status = LCOMM_OK;
  if (lcomm_is_server(it->comm)) {
    forked_fine(self, it->comm, lcomm_server_run(it->comm, NULL, NULL), "a run");
    forked_barrier(self);
    forked_barrier(self);
    (void)lcomm_destroy(it->comm);
    return;
  }
  forked_fine(self, it->comm, step(it), "the first step");
  forked_fine(self, it->comm, lcomm_server_end(it->comm), "the end");
  forked_barrier(self);
  status = step(it);
  const char *why = lcomm_last_error(it->comm);
  forked_require(self, status == LCOMM_ERR_TIMEOUT, "%s: %s", lcomm_status_name(status), why);
  forked_require(self, strstr(why, "algo=servers waits for rank ") != NULL, "%s", why);
  forked_barrier(self);
  (void)lcomm_destroy(it->comm);
}

/* Workers sync before their first step, or with results under way: what has become of a server is
 * said by all. */
static lcomm_status sync(training *it) {
  lcomm_status status = LCOMM_OK;
  for (int there = 1; there && status == LCOMM_OK;) {
    status = lcomm_tensors_sync(it->comm, &there);
  }
  return status;
}

static void require_named(forked *self, training *it, lcomm_status status) {
  const char *why = lcomm_last_error(it->comm);
  forked_require(self, status == LCOMM_ERR_TRANSPORT || status == LCOMM_ERR_TIMEOUT, "%s: %s",
                 lcomm_status_name(status), why);
  forked_require(self, strstr(why, "rank 1") != NULL, "another rank is named: %s", why);
  forked_require(self, lcomm_is_server(it->comm) || sync(it) == status,
                 "the failure does not stay");
  (void)lcomm_destroy(it->comm);
}

static void a_server_that_died_before_the_first_step_is_named_by_sync(forked *self) {
  training *it = begin_stale(self);
  if (self->rank == SERVER) {
    forked_die();
  }
  require_named(self, it, lcomm_is_server(it->comm) ? go_on(it) : sync(it));
}

static void a_server_that_does_not_serve_is_named_by_sync(forked *self) {
  training *it = begin_stale(self);
  if (self->rank == SERVER) {
    forked_barrier(self);
    (void)lcomm_destroy(it->comm);
    return;
  }
  lcomm_status status = lcomm_is_server(it->comm) ? go_on(it) : sync(it);
  forked_barrier(self);
  require_named(self, it, status);
}

static void require_dead_server_at_sync(forked *self, training *it) {
  lcomm_status status = LCOMM_OK;
  if (lcomm_is_server(it->comm)) {
    status = lcomm_server_run(it->comm, self->rank == SERVER ? die : pass_on, NULL);
  } else {
    for (int steps = 0; status == LCOMM_OK && steps < STEPS_MOST; steps++) {
      status = step(it);
      status = status == LCOMM_OK ? sync(it) : status;
    }
  }
  require_named(self, it, status);
}

static void a_dead_server_is_named_by_sync(forked *self) {
  require_dead_server_at_sync(self, begin(self));
}

static void a_dead_server_is_named_by_sync_with_results_under_way(forked *self) {
  require_dead_server_at_sync(self, begin_stale(self));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FORKED_TEST_DYING(a_dead_server_is_named_by_all, RANKS, SERVER),
      FORKED_TEST_DYING(a_dead_worker_is_named_by_all, RANKS, WORKER),
      FORKED_TEST_DYING(a_dead_server_is_named_by_workers_that_go_on, RANKS, SERVER),
      FORKED_TEST_DYING(a_dead_worker_is_named_by_workers_that_go_on, RANKS, WORKER),
      FORKED_TEST(a_silent_worker_is_named_by_all, RANKS),
      FORKED_TEST(a_worker_that_ends_early_ends_in_an_error_on_all, RANKS),
      FORKED_TEST(an_update_that_fails_ends_all_with_its_sentence, RANKS),
      FORKED_TEST(an_update_of_some_servers_is_a_mismatch, RANKS),
      FORKED_TEST(a_server_that_does_not_serve_is_named, RANKS),
      FORKED_TEST_DYING(a_server_that_died_before_the_first_step_is_named_by_sync, RANKS, SERVER),
      FORKED_TEST(a_server_that_does_not_serve_is_named_by_sync, RANKS),
      FORKED_TEST_DYING(a_dead_server_is_named_by_sync, RANKS, SERVER),
      FORKED_TEST_DYING(a_dead_server_is_named_by_sync_with_results_under_way, RANKS, SERVER),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

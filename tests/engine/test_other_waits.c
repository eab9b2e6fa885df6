/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Several communicators of one process: whoever is awaited in one, and waits in another
 * itself, is no fault. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "libcomm/engine/other_waits.h"
#include "libcomm/transport/transport.h"
#include "tests/support/forked_comm.h"
#include "tests/support/unit_tests.h"

/* By an eighth of its patience a rank may begin to wait later than the other: who has lost patience
 * answers no more, and is silent like the stopped rank. */
enum { RANKS = 3, STOPPED = 2, PATIENCE_S = 10 };

static lcomm_progress_mode mode;
static const char *transport;

static lcomm_comm *make(forked *self) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.transport = transport;
  config.progress = mode;
  config.timeout_s = PATIENCE_S;
  return forked_create(self, &config);
}

/* All that report have done so; nobody needs the stopped rank any more. */
static void end_stopped(forked *self) {
  atomic_int *written = (void *)self->shared;
  atomic_fetch_add(written, 1);
  while (atomic_load(written) < RANKS - 1) {
    usleep(1000);
  }
  if (self->rank == 0) {
    kill((pid_t)self->identities[STOPPED].pid, SIGKILL);
  }
}

/* Rank 0 waits for the stopped rank in a, rank 1 for rank 0 in b. */
static void wait_in_two(forked *self) {
  lcomm_comm *a = make(self), *b = make(self);
  float value = 1;
  forked_barrier(self);
  if (self->rank == STOPPED) {
    raise(SIGSTOP);
  }
  lcomm_comm *comm = self->rank == 0 ? a : b;
  lcomm_status status = self->rank == 0
                            ? lcomm_allreduce(a, &value, &value, 1, LCOMM_FLOAT32, LCOMM_SUM)
                            : lcomm_broadcast(b, &value, 1, LCOMM_FLOAT32, 0);
  const char *said = strstr(lcomm_last_error(comm), "): ");
  end_stopped(self);
  forked_require(self, status == LCOMM_ERR_TIMEOUT, "%s", lcomm_status_name(status));
  forked_require(self, said && strstr(said, "rank 2 ") && !strstr(said, "rank 0 "),
                 "rank 2 is stopped, but %s", lcomm_last_error(comm));
  lcomm_destroy(b);
  lcomm_destroy(a);
}

static void over(const char *name) {
  transport = name;
  for (mode = LCOMM_PROGRESS_CALLS; mode <= LCOMM_PROGRESS_THREAD; mode++) {
    forked_run_dying(RANKS, STOPPED, wait_in_two);
  }
}

static void who_waits_elsewhere_is_not_named(void **state) {
  (void)state;
  over("shm");
  if (lcomm_ucx_version()) {
    over("ucx");
  }
}

/* Communicators are told apart by their addresses alone. */
static void a_wait_is_another_one_for_all_communicators_but_its_own(void **state) {
  static const char places[3];
  const struct lcomm_comm *comms[3];
  uint64_t host = 0, pid = 0;
  (void)state;
  for (int i = 0; i < 3; i++) {
    comms[i] = (const void *)&places[i];
  }
  assert_false(lcomm_other_waits_find(comms[0], &host, &pid));
  lcomm_other_waits_add(comms[0], 0, 0);
  assert_false(lcomm_other_waits_find(comms[0], &host, &pid));
  assert_true(lcomm_other_waits_find(comms[1], &host, &pid) && pid == 0);
  lcomm_other_waits_add(comms[2], 7, 11);
  lcomm_other_waits_add(comms[2], 0, 0); /* what is known stays known */
  assert_true(lcomm_other_waits_find(comms[1], &host, &pid) && host == 7 && pid == 11);
  lcomm_other_waits_remove(comms[2]);
  assert_false(lcomm_other_waits_find(comms[0], &host, &pid));
  lcomm_other_waits_remove(comms[0]);
  assert_false(lcomm_other_waits_find(comms[1], &host, &pid));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_wait_is_another_one_for_all_communicators_but_its_own),
    cmocka_unit_test(who_waits_elsewhere_is_not_named),
};
RUN_TESTS(tests)

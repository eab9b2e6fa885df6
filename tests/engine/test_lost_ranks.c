/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A process that one communicator has given up is not waited for again when the others
 * that it is in are destroyed. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/engine.h"
#include "tests/support/forked.h"
#include "tests/support/unit_tests.h"

enum { COMMS = 12, STOPPED = 2 };

static const double TIMEOUT_S = 3;

/* How many of them forgot the failure. */
static int destroy_all(lcomm_comm **comms) {
  int forgot = 0;
  for (int i = 0; i < COMMS; i++) {
    forgot += lcomm_destroy(comms[i]) != LCOMM_ERR_TIMEOUT;
  }
  return forgot;
}

static void stop_one(forked *self) {
  char said[LCOMM_ERROR_MAX];
  lcomm_comm *comms[COMMS];
  lcomm_config config = LCOMM_CONFIG_INIT;
  _Atomic int *finished = (void *)self->shared;
  config.timeout_s = TIMEOUT_S;
  config.transport = "shm";
  for (int i = 0; i < COMMS; i++) {
    lcomm_status status = lcomm_create(&self->boot, &config, &comms[i]);
    forked_require(self, status == LCOMM_OK, "%s", lcomm_last_error(NULL));
  }
  forked_barrier(self);
  if (self->rank == STOPPED) {
    raise(SIGSTOP);
  }
  lcomm_status status = lcomm_barrier(comms[COMMS / 2]);
  snprintf(said, sizeof(said), "%s", lcomm_last_error(comms[COMMS / 2]));
  double begin_s = lcomm_clock_s();
  int forgot = destroy_all(comms);
  double took_s = lcomm_clock_s() - begin_s;
  if (atomic_fetch_add(finished, 1) + 1 == self->size - 1) {
    kill((pid_t)self->identities[STOPPED].pid, SIGKILL);
  }
  forked_require(self, status == LCOMM_ERR_TIMEOUT && strstr(said, "rank 2 "), "%s", said);
  forked_require(self, forgot == 0, "%d communicators ended well", forgot);
  forked_require(self, took_s < COMMS / 2 * TIMEOUT_S, "%d communicators took %.1f s to destroy",
                 COMMS, took_s);
}

static void a_lost_process_is_waited_for_once(void **state) {
  (void)state;
  forked_run_dying(4, STOPPED, stop_one);
}

/* Who takes part in a new communicator is there again. */
static void a_process_that_comes_back_is_waited_for(forked *self) {
  lcomm_comm *first = NULL, *second = NULL, *third = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.timeout_s = 1;
  config.transport = "shm";
  lcomm_status status = lcomm_create(&self->boot, &config, &first);
  forked_require(self, status == LCOMM_OK, "%s", lcomm_last_error(NULL));
  if (self->rank == 1) {
    struct timespec late = {3, 0};
    nanosleep(&late, NULL);
  }
  status = lcomm_barrier(first);
  forked_require(self, status == LCOMM_ERR_TIMEOUT, "%s", lcomm_last_error(first));
  forked_barrier(self);
  config.timeout_s = 30;
  status = lcomm_create(&self->boot, &config, &second);
  forked_require(self, status == LCOMM_OK, "%s", lcomm_last_error(NULL));
  status = lcomm_create(&self->boot, &config, &third);
  forked_require(self, status == LCOMM_OK, "%s", lcomm_last_error(NULL));
  lcomm_destroy(first);
  status = lcomm_destroy(second);
  forked_require(self, status == LCOMM_OK, "%s", lcomm_status_name(status));
  status = lcomm_destroy(third);
  forked_require(self, status == LCOMM_OK, "%s", lcomm_status_name(status));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_lost_process_is_waited_for_once),
    FORKED_TEST(a_process_that_comes_back_is_waited_for, 3),
};
RUN_TESTS(tests)

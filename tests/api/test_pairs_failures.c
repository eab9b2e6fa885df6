/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages between two ranks of which one is silent, or dies: the other ends with a sentence that
 * names it, and who is not waited for is not late. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "libcomm/base/error.h"
#include "tests/support/forked_comm.h"
#include "tests/support/unit_tests.h"

enum { COUNT = 300000, VICTIM = 1 };

static float data[COUNT], received[COUNT];

static lcomm_comm *make_with_timeout(forked *self, double timeout_s) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = "pipe=int8";
  config.transport = "shm";
  config.nodes = 2;
  config.timeout_s = timeout_s;
  config.progress = LCOMM_PROGRESS_CALLS;
  return forked_create(self, &config);
}

static void require_end(forked *self, const lcomm_comm *comm, lcomm_status status,
                        lcomm_status wanted, const char *word) {
  const char *said = lcomm_last_error(comm);
  forked_require(self, status == wanted, "%s instead of %s: %s", lcomm_status_name(status),
                 lcomm_status_name(wanted), said);
  forked_require(self, strstr(said, word) != NULL, "no '%s' in: %s", word, said);
}

static void a_rank_that_does_not_receive_is_named(forked *self) {
  lcomm_comm *comm = make_with_timeout(self, 0.5);
  lcomm_status status =
      self->rank == 0 ? lcomm_send(comm, data, COUNT, LCOMM_FLOAT32, 1) : LCOMM_ERR_TIMEOUT;
  forked_barrier(self);
  require_end(self, comm, self->rank == 0 ? status : lcomm_barrier(comm), LCOMM_ERR_TIMEOUT,
              "a send of 300000 float32 to rank 1");
  lcomm_destroy(comm);
}

static void a_rank_that_does_not_send_is_named(forked *self) {
  lcomm_comm *comm = make_with_timeout(self, 0.5);
  lcomm_status status =
      self->rank == 0 ? lcomm_recv(comm, received, COUNT, LCOMM_FLOAT32, 1) : LCOMM_ERR_TIMEOUT;
  forked_barrier(self);
  require_end(self, comm, self->rank == 0 ? status : lcomm_barrier(comm), LCOMM_ERR_TIMEOUT,
              "a receive of 300000 float32 from rank 1");
  lcomm_destroy(comm);
}

static void both_that_send_first_are_told(forked *self) {
  lcomm_comm *comm = make_with_timeout(self, 0.5);
  lcomm_status status = lcomm_send(comm, data, COUNT, LCOMM_FLOAT32, 1 - self->rank);
  require_end(self, comm, status, LCOMM_ERR_TIMEOUT, "does not receive");
  forked_barrier(self);
  lcomm_destroy(comm);
}

/* Requests that nobody waits for yet lie there for longer than the time-out. */
static void a_message_that_nobody_waits_for_is_not_late(forked *self) {
  static const struct timespec longer = {.tv_sec = 4};
  lcomm_comm *comm = make_with_timeout(self, 3);
  lcomm_request request;
  float sum = 0;
  if (self->rank == 0) {
    forked_fine(self, comm, lcomm_irecv(comm, received, COUNT, LCOMM_FLOAT32, 1, &request),
                "a receive");
  }
  forked_fine(self, comm, lcomm_allreduce(comm, &sum, &sum, 1, LCOMM_FLOAT32, LCOMM_SUM), "a sum");
  nanosleep(&longer, NULL);
  forked_barrier(self);
  forked_fine(self, comm, lcomm_allreduce(comm, &sum, &sum, 1, LCOMM_FLOAT32, LCOMM_SUM), "a sum");
  if (self->rank == 0) {
    forked_fine(self, comm, lcomm_wait(comm, &request), "the wait");
  } else {
    forked_fine(self, comm, lcomm_send(comm, data, COUNT, LCOMM_FLOAT32, 0), "the send");
  }
  forked_destroy(self, comm);
}

/* ------------------------------------------------------------------ killed */

static void the_receiver_dies(forked *self) {
  lcomm_comm *comm = make_with_timeout(self, 60);
  if (self->rank == VICTIM) {
    forked_die();
  }
  if (self->rank == 0) {
    require_end(self, comm, lcomm_send(comm, data, COUNT, LCOMM_FLOAT32, VICTIM),
                LCOMM_ERR_TRANSPORT, "rank 1 ");
  } else {
    require_end(self, comm, lcomm_barrier(comm), LCOMM_ERR_TRANSPORT, "rank 1 ");
  }
  lcomm_destroy(comm);
}

static void the_sender_dies(forked *self) {
  lcomm_comm *comm = make_with_timeout(self, 60);
  if (self->rank == VICTIM) {
    lcomm_request request;
    forked_fine(self, comm, lcomm_isend(comm, data, COUNT, LCOMM_FLOAT32, 0, &request), "a send");
    forked_die();
  }
  lcomm_request request;
  lcomm_status status = LCOMM_OK;
  if (self->rank == 0) {
    forked_fine(self, comm, lcomm_irecv(comm, received, COUNT, LCOMM_FLOAT32, VICTIM, &request),
                "a receive");
    status = lcomm_wait(comm, &request);
    forked_require(self, lcomm_wait(comm, &request) == status, "another result the second time");
  } else {
    status = lcomm_barrier(comm);
  }
  require_end(self, comm, status, LCOMM_ERR_TRANSPORT, "rank 1 ");
  require_end(self, comm, lcomm_send(comm, data, 1, LCOMM_FLOAT32, 0), LCOMM_ERR_TRANSPORT,
              "rank 1 ");
  lcomm_destroy(comm);
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(a_rank_that_does_not_receive_is_named, 2, 4),
    FORKED_TEST(a_rank_that_does_not_send_is_named, 2, 4),
    FORKED_TEST(both_that_send_first_are_told, 2),
    FORKED_TEST(a_message_that_nobody_waits_for_is_not_late, 2),
    FORKED_TEST_DYING(the_receiver_dies, 4, VICTIM),
    FORKED_TEST_DYING(the_sender_dies, 4, VICTIM),
};
RUN_TESTS(tests)

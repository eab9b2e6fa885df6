/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* net=auto in calls: what is kept of a plan's calls, see call_watch.h. */

#include <string.h>

#include "libcomm/call/call_watch.h"
#include "libcomm/tensor/residual_guard.h"
#include "tests/support/mpi_property.h"

enum { AGREED = 4 /* the first agreed call */, NODES = 2, COUNT = 600000, RANKS_MAX = 8 };

static const double SLOW_GB_S = 1e-5;

static float data[COUNT], other[COUNT];

static void require_fine(const lcomm_comm *comm, lcomm_status status) {
  require(status == LCOMM_OK, "%s", lcomm_last_error(comm));
}

static lcomm_comm *auto_comm(const char *policy) {
  lcomm_comm *comm = make_comm(policy, NODES);
  comm->runs.watch->topo.cost[LCOMM_LINK_NET] =
      (lcomm_link_cost){.latency_us = 1, .message_us = 0.1, .bandwidth_gb_s = SLOW_GB_S};
  return comm;
}

static double bandwidth_of(const lcomm_comm *comm) {
  return lcomm_topo_of_calls(comm)->cost[LCOMM_LINK_NET].bandwidth_gb_s;
}

/* The plan of the only shape that was called. */
static lcomm_watched_plan *watched_of(const lcomm_comm *comm) {
  lcomm_watched_plan *plans = comm->runs.watch->plans;
  size_t i = 0;
  while (i < LCOMM_CALL_WATCH_PLANS && plans[i].calls == 0) {
    i++;
  }
  require(i < LCOMM_CALL_WATCH_PLANS, "nothing was watched");
  return &plans[i];
}

static unsigned count_due(const lcomm_comm *comm) {
  unsigned due = 0;
  for (size_t i = 0; i < LCOMM_CALL_WATCH_PLANS; i++) {
    due += comm->runs.watch->plans[i].due;
  }
  require(due == comm->runs.watch->due, "%u plans are due, %u are counted", due,
          comm->runs.watch->due);
  return due;
}

static void sum(lcomm_comm *comm) {
  require_fine(comm, lcomm_allreduce(comm, data, data, COUNT, LCOMM_FLOAT32, LCOMM_SUM));
}

static void start(lcomm_comm *comm, float *values, lcomm_request *request) {
  require_fine(comm,
               lcomm_iallreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM, request));
}

static void sum_apart(lcomm_comm *comm) {
  lcomm_request request = {0};
  start(comm, data, &request);
  require_fine(comm, lcomm_wait(comm, &request));
}

/* The first one opens connections, and others may use the processor in any. */
static void the_least_time_of_all_but_the_first_call_counts(void) {
  lcomm_comm *comm = auto_comm("net=auto:int8 min=1");
  sum(comm);
  require(!(watched_of(comm)->least_s > 0), "the first call counts");
  sum(comm);
  require(watched_of(comm)->least_s > 0, "the second call does not count");
  watched_of(comm)->least_s = 1e-9;
  sum(comm);
  require(watched_of(comm)->least_s < 2e-9, "a longer one counts");
  sum(comm);
  require(!(watched_of(comm)->least_s > 0), "times of before a comparison go on to count");
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

/* Residuals ask for the number before they take their run. */
static void a_correction_is_counted_on_all_ranks(void) {
  lcomm_comm *comm = auto_comm("net=auto:int8 min=1");
  for (int call = 1; call <= AGREED; call++) {
    require(comm->runs.watch->revisions == 0, "call %d: revised", call);
    sum(comm);
  }
  require(bandwidth_of(comm) > 2 * SLOW_GB_S && comm->runs.watch->revisions == 1, "not counted");
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

static void what_is_due_is_compared_once(void) {
  lcomm_comm *comm = auto_comm("net=auto:int8 min=1");
  for (int call = 1; call <= AGREED; call++) {
    require(count_due(comm) == 0, "call %d", call);
    sum_apart(comm);
  }
  require(count_due(comm) == 1, "it is not due");
  require_fine(comm, lcomm_barrier(comm));
  require(count_due(comm) == 0, "it stays due");
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

/* A plan that takes the place of another one, whose hash it shares but for the higher bits. */
static void a_plan_that_loses_its_place_is_not_due(void) {
  lcomm_comm *comm = auto_comm("net=auto:int8 min=1");
  for (int call = 1; call <= AGREED; call++) {
    sum_apart(comm);
  }
  watched_of(comm)->hash += LCOMM_CALL_WATCH_PLANS;
  sum_apart(comm);
  require(count_due(comm) == 0, "what is gone is due");
  require_fine(comm, lcomm_barrier(comm));
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

/* The numbers of elements of its parts are the caller's, and may be gone. */
static void a_sum_of_uneven_parts_is_never_due(void) {
  lcomm_comm *comm = auto_comm("net=auto:int8 min=1");
  uint64_t parts[RANKS_MAX];
  for (int i = 0; i < mpi_size; i++) {
    parts[i] = COUNT / 12 * (uint64_t)(i + 1);
  }
  for (int call = 1; call <= AGREED; call++) {
    lcomm_request request = {0};
    require_fine(
        comm, lcomm_ireduce_scatterv(comm, data, other, parts, LCOMM_FLOAT32, LCOMM_SUM, &request));
    require_fine(comm, lcomm_wait(comm, &request));
  }
  require((int)watched_of(comm)->calls == AGREED && count_due(comm) == 0, "it is due");
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

/* Each of the two may have waited for the other one. */
static void sums_beside_each_other_have_no_time(void) {
  lcomm_comm *comm = auto_comm("net=auto:int8 min=1");
  for (int call = 0; call < 3; call++) {
    lcomm_request first = {0}, second = {0};
    start(comm, data, &first);
    start(comm, other, &second);
    require_fine(comm, lcomm_wait(comm, &first));
    require_fine(comm, lcomm_wait(comm, &second));
    require(!(watched_of(comm)->least_s > 0), "round %d has a time", call);
  }
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

static void calls_with_a_residual_that_do_not_block_have_times(void) {
  enum { MOST = 64 };
  lcomm_residual *residual = NULL;
  lcomm_comm *comm = auto_comm("net=auto:int8 min=1");
  require_fine(comm, lcomm_residual_create(comm, COUNT, LCOMM_SUM, &residual));
  int timed = 0;
  for (int call = 0; call < MOST && !timed; call++) { /* a busy machine may come late to a wait */
    lcomm_request request = {0};
    require_fine(comm, lcomm_iallreduce_ef(residual, data, data, &request));
    require_fine(comm, lcomm_wait(comm, &request));
    timed = watched_of(comm)->least_s > 0;
    MPI_Allreduce(MPI_IN_PLACE, &timed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  }
  require(timed, "none has a time");
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

/* The prediction would be of another plan. */
static void calls_by_a_milder_codec_are_not_compared(void) {
  lcomm_residual *residual = NULL;
  lcomm_comm *comm = auto_comm("net=auto:int8 min=1 guard=1000");
  require_fine(comm, lcomm_residual_create(comm, COUNT, LCOMM_SUM, &residual));
  residual->guarded.rungs = 1;
  lcomm_residual_guard_soften(residual);
  for (int call = 1; call <= AGREED; call++) {
    require_fine(comm, lcomm_allreduce_ef(residual, data, data));
  }
  require((int)watched_of(comm)->calls == AGREED, "it is not watched");
  require(comm->runs.watch->revisions == 0, "it is compared");
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

static const mpi_property properties[] = {
    PROPERTY(the_least_time_of_all_but_the_first_call_counts),
    PROPERTY(a_correction_is_counted_on_all_ranks),
    PROPERTY(what_is_due_is_compared_once),
    PROPERTY(a_plan_that_loses_its_place_is_not_due),
    PROPERTY(a_sum_of_uneven_parts_is_never_due),
    PROPERTY(sums_beside_each_other_have_no_time),
    PROPERTY(calls_with_a_residual_that_do_not_block_have_times),
    PROPERTY(calls_by_a_milder_codec_are_not_compared),
};
RUN_PROPERTIES(mpi_property_main, properties)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* Calls that do not block under error feedback: many in flight, all with the same
 * residual, which one call at a time may use. */

#include <math.h>
#include <mpi.h>

#include "tests/interpose/interposer_init.h"
#include "tests/interpose/interposer_sums.h"

enum { CALLS = 24, COUNT = 5000 };

static void before(void) {
  set_default("LCOMM_POLICY", "net=int8+ef min=0 step=1");
}

/* What one call does not send comes with the next: over many calls of one input the sums add
 * up to the exact ones, but for the residuals still carried. */
static void check_all(sum_call *calls, const char *what) {
  double most = mpi_size * 1000.0;
  bool exact = true;
  for (int i = 0; i < COUNT; i++) {
    double sum = 0;
    for (int k = 0; k < CALLS; k++) {
      sum += (double)calls[k].receive[i];
      exact &= calls[k].receive[i] == sum_of(i, 1);
    }
    double want = (double)CALLS * (double)sum_of(i, 1);
    require(fabs(sum - want) < most / 20, "%s: element %d is %g, not %g", what, i, sum, want);
  }
  require(exact == !interposer_is_on(), "%s: nothing was compressed", what);
  for (int k = 0; k < CALLS; k++) {
    free(calls[k].send);
  }
}

static void calls_in_flight_take_turns_with_the_residual(void) {
  sum_call calls[CALLS];
  MPI_Request requests[CALLS];
  for (int k = 0; k < CALLS; k++) {
    calls[k] = new_call(COUNT, 1);
    start(&calls[k], MPI_COMM_WORLD, &requests[k]);
  }
  MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE);
  check_all(calls, "in flight");
}

static void persistent_requests_have_residuals_of_their_own(void) {
  MPI_Request request;
  sum_call calls[CALLS], call = new_call(COUNT, 1);
  ALLREDUCE_INIT(call.send, call.receive, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &request);
  for (int k = 0; k < CALLS; k++) {
    calls[k] = new_call(COUNT, 1);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < COUNT; i++) {
      calls[k].receive[i] = call.receive[i];
    }
  }
  MPI_Request_free(&request);
  free(call.send);
  check_all(calls, "persistent");
}

static const mpi_property properties[] = {
    PROPERTY(calls_in_flight_take_turns_with_the_residual),
    PROPERTY(persistent_requests_have_residuals_of_their_own),
};
RUN_INTERPOSER_PROPERTIES(before, properties)

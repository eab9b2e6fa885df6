/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 4 */

/* net=auto in calls: wrong figures are corrected after the agreed calls of a shape, on all ranks,
 * and sums are right before, in between and after. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libcomm/call/call_watch.h"
#include "tests/support/mpi_property.h"

enum { REVISED = 4 /* the first agreed call */, NODES = 2, COUNT = 600000, SHORT = 100 };

/* The link is said to pass 10 KB in a second. Sums are longer than a burst, also as int8 and in
 * halves. */
static const double SLOW_GB_S = 1e-5;

static float data[COUNT];

static void suppose_link(lcomm_comm *comm, double gb_s) {
  comm->runs.watch->topo.cost[LCOMM_LINK_NET] =
      (lcomm_link_cost){.latency_us = 1, .message_us = 0.1, .bandwidth_gb_s = gb_s};
}

static lcomm_comm *auto_comm(const char *policy) {
  lcomm_comm *comm = make_comm(policy, NODES);
  if (comm->runs.watch) {
    suppose_link(comm, SLOW_GB_S);
  }
  return comm;
}

static double bandwidth_of(const lcomm_comm *comm) {
  return lcomm_topo_of_calls(comm)->cost[LCOMM_LINK_NET].bandwidth_gb_s;
}

static void require_equal_figures(const lcomm_comm *comm) {
  lcomm_auto_figures it = lcomm_auto_figures_of(lcomm_topo_of_calls(comm));
  require(same_everywhere(&it, sizeof it), "ranks have different figures");
}

/* Whole numbers that every codec of the class carries exactly: each rank adds its own. */
static void fill(void) {
  for (int i = 0; i < COUNT; i++) {
    data[i] = (float)(mpi_rank + 1);
  }
}

static void require_sum(uint64_t count, const char *when) {
  float wanted = (float)(mpi_size * (mpi_size + 1) / 2);
  for (uint64_t i = 0; i < count; i++) {
    require(fabsf(data[i] - wanted) <= 0.02f * wanted, "%s: element %llu is %g, not %g", when,
            (unsigned long long)i, (double)data[i], (double)wanted);
  }
}

static void sum(lcomm_comm *comm, uint64_t count, const char *when) {
  fill();
  require(lcomm_allreduce(comm, data, data, count, LCOMM_FLOAT32, LCOMM_SUM) == LCOMM_OK, "%s: %s",
          when, lcomm_last_error(comm));
  require_sum(count, when);
}

static void wrong_figures_are_corrected_after_the_agreed_call_of_a_shape(void) {
  lcomm_comm *comm = auto_comm("net=auto:int8 min=1");
  for (int call = 1; call <= REVISED + 2; call++) {
    sum(comm, COUNT, "a call");
    bool revised = bandwidth_of(comm) > 2 * SLOW_GB_S;
    require(revised == (call >= REVISED), "call %d: %g GB/s", call, bandwidth_of(comm));
    require_equal_figures(comm);
  }
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

/* Each shape has a count of its own. */
static void calls_of_other_shapes_do_not_count(void) {
  lcomm_comm *comm = auto_comm("net=auto:int8 min=1");
  for (uint64_t i = 0; i < 2 * REVISED; i++) {
    sum(comm, COUNT - 100 * i, "a shape");
  }
  require(bandwidth_of(comm) == SLOW_GB_S, "%g GB/s", bandwidth_of(comm));
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

/* The program computes between the start and the wait. */
static void sum_apart(lcomm_comm *comm, bool computes) {
  const struct timespec while_s = {.tv_nsec = 200000000};
  lcomm_request request = {0};
  fill();
  require(lcomm_iallreduce(comm, data, data, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &request) == LCOMM_OK,
          "start");
  if (computes) {
    nanosleep(&while_s, NULL);
  }
  require(lcomm_wait(comm, &request) == LCOMM_OK, "%s", lcomm_last_error(comm));
  require_sum(COUNT, "not blocking");
}

/* All ranks are at one place only where a call blocks, whatever it is. On a busy machine rank 0 may
 * come too late to its waits for their times to count before the first agreed call, or the second.
 */
static void calls_that_do_not_block_are_compared_by_the_next_one_that_does(void) {
  enum { MOST = 64 };
  lcomm_comm *comm = auto_comm("net=auto:int8 min=1");
  bool revised = false;
  for (int i = 1; i <= MOST && !revised; i++) {
    sum_apart(comm, false);
    require(bandwidth_of(comm) == SLOW_GB_S, "%g GB/s", bandwidth_of(comm));
    if (lcomm_auto_is_agreed((uint64_t)i)) {
      require(lcomm_barrier(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
      revised = bandwidth_of(comm) > 2 * SLOW_GB_S;
    }
  }
  require(revised, "%g GB/s", bandwidth_of(comm));
  require_equal_figures(comm);
  sum_apart(comm, false);
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

/* Without a thread nothing moves while the program computes, and two sums share the link. */
static void times_that_say_nothing_do_not_count(void) {
  lcomm_comm *comm = auto_comm("net=auto:int8 min=1");
  static float other[COUNT];
  for (int i = 0; i < REVISED; i++) {
    lcomm_request request = {0};
    sum_apart(comm, true);
    require(lcomm_iallreduce(comm, other, other, COUNT - 8, LCOMM_FLOAT32, LCOMM_SUM, &request) ==
                LCOMM_OK,
            "start");
    sum_apart(comm, false);
    require(lcomm_wait(comm, &request) == LCOMM_OK, "%s", lcomm_last_error(comm));
  }
  require(lcomm_barrier(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
  require(lcomm_barrier(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
  require(bandwidth_of(comm) == SLOW_GB_S, "%g GB/s", bandwidth_of(comm));
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

static void fill_call(int call) {
  for (int i = 0; i < COUNT; i++) {
    data[i] = (float)(mpi_rank + 1 + (i * 31 + call) % 7);
  }
}

static void calls_with_a_residual_are_compared_too(void) {
  lcomm_residual *residual = NULL;
  lcomm_comm *comm = auto_comm("net=auto:int8 min=1");
  require(lcomm_residual_create(comm, COUNT, LCOMM_SUM, &residual) == LCOMM_OK, "residual");
  for (int call = 1; call <= REVISED + 2; call++) {
    fill();
    require(lcomm_allreduce_ef(residual, data, data) == LCOMM_OK, "%s", lcomm_last_error(comm));
    require_sum(COUNT, "with a residual");
    bool revised = bandwidth_of(comm) > 2 * SLOW_GB_S;
    require(revised == (call >= REVISED), "call %d: %g GB/s", call, bandwidth_of(comm));
    require_equal_figures(comm);
  }
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

/* One rank may encode for its node. */
static bool any_rank(bool here) {
  int mine = here, any = 0;
  MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return any != 0;
}

/* From top-k to exact sums, as figures may be corrected: all results, and what a flush pays, are
 * all that was contributed. */
static void nothing_is_lost_when_figures_change_the_codec_of_a_residual(void) {
  enum { CALLS = 7, CHANGED = 4 };
  static double all[COUNT];
  lcomm_residual *residual = NULL;
  lcomm_stats before, after;
  lcomm_comm *comm = auto_comm("net=auto:topk min=1");
  require(lcomm_residual_create(comm, COUNT, LCOMM_SUM, &residual) == LCOMM_OK, "residual");
  memset(all, 0, sizeof(all));
  for (int call = 0; call < CALLS; call++) {
    if (call == CHANGED) {
      suppose_link(comm, 1e6);
      comm->runs.watch->revisions++;
    }
    lcomm_stats_get(comm, &before);
    fill_call(call);
    require((call == CALLS - 1 ? lcomm_allreduce_flush(residual, data, data)
                               : lcomm_allreduce_ef(residual, data, data)) == LCOMM_OK,
            "%s", lcomm_last_error(comm));
    require(same_everywhere(data, sizeof(data)), "call %d: the ranks differ", call);
    lcomm_stats_get(comm, &after);
    require(any_rank(after.topk_picked > before.topk_picked) == (call < CHANGED),
            "call %d: top-k or not", call);
    for (int i = 0; i < COUNT; i++) {
      all[i] += (double)data[i];
    }
  }
  for (int i = 0; i < COUNT; i++) {
    double wanted = CALLS * mpi_size * (mpi_size + 1) / 2.0;
    for (int call = 0; call < CALLS; call++) {
      wanted += mpi_size * ((i * 31 + call) % 7);
    }
    require(fabs(all[i] - wanted) <= 1e-4 * wanted, "element %d: %g, not %g", i, all[i], wanted);
  }
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

/* A run that is in use while runs are given up stays until it is waited for, also where ranks wait
 * at different places. */
static void a_call_in_flight_survives_a_revision(void) {
  static float other[COUNT];
  lcomm_comm *comm = auto_comm("net=auto:int8 min=1");
  for (int round = 0; round < 3; round++) {
    lcomm_request request = {0};
    for (int i = 0; i < COUNT; i++) {
      other[i] = 1;
    }
    require(lcomm_iallreduce(comm, other, other, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &request) ==
                LCOMM_OK,
            "start");
    if (mpi_rank % 2 == 1) {
      require(lcomm_wait(comm, &request) == LCOMM_OK, "%s", lcomm_last_error(comm));
    }
    for (int call = 0; call < REVISED; call++) {
      sum(comm, COUNT - 8, "beside one in flight");
    }
    if (mpi_rank % 2 == 0) {
      require(lcomm_wait(comm, &request) == LCOMM_OK, "%s", lcomm_last_error(comm));
    }
    require(fabsf(other[COUNT - 1] - (float)mpi_size) < 0.1f, "%g", (double)other[COUNT - 1]);
  }
  require(bandwidth_of(comm) > 2 * SLOW_GB_S, "%g GB/s", bandwidth_of(comm));
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

static void a_plan_that_is_printed_is_that_of_the_corrected_figures(void) {
  static char before[4096], after[4096];
  lcomm_comm *comm = auto_comm("net=auto:int8 min=1");
  require(lcomm_plan_print(comm, COUNT, LCOMM_FLOAT32, 0, before, sizeof before) == LCOMM_OK, "no");
  for (int call = 0; call < REVISED; call++) {
    sum(comm, COUNT, "a call");
  }
  require(lcomm_plan_print(comm, COUNT, LCOMM_FLOAT32, 0, after, sizeof after) == LCOMM_OK, "no");
  require(strstr(before, "predicted none ") != NULL && strcmp(before, after) != 0, "%s", after);
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

static void without_auto_nothing_is_watched(void) {
  lcomm_comm *comm = auto_comm("net=int8");
  require(!comm->runs.watch && !comm->runs.topo, "calls are watched");
  require(lcomm_policy_set(comm, "net=auto:int8") == LCOMM_OK, "%s", lcomm_last_error(comm));
  require(comm->runs.watch != NULL, "calls are not watched");
  sum(comm, COUNT, "after the change");
  require(lcomm_policy_set(comm, "") == LCOMM_OK, "%s", lcomm_last_error(comm));
  require(!comm->runs.watch && !comm->runs.topo, "calls are still watched");
  sum(comm, COUNT, "exact again");
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

/* Below min= no codec may act, and nothing is chosen. */
static void calls_on_which_no_codec_acts_do_not_count(void) {
  lcomm_comm *comm = auto_comm("net=auto:int8");
  for (int call = 0; call < 2 * REVISED; call++) {
    sum(comm, SHORT, "a short call");
  }
  require(bandwidth_of(comm) == SLOW_GB_S, "%g GB/s", bandwidth_of(comm));
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

static const mpi_property properties[] = {
    PROPERTY(wrong_figures_are_corrected_after_the_agreed_call_of_a_shape),
    PROPERTY(calls_of_other_shapes_do_not_count),
    PROPERTY(calls_that_do_not_block_are_compared_by_the_next_one_that_does),
    PROPERTY(times_that_say_nothing_do_not_count),
    PROPERTY(calls_with_a_residual_are_compared_too),
    PROPERTY(nothing_is_lost_when_figures_change_the_codec_of_a_residual),
    PROPERTY(a_call_in_flight_survives_a_revision),
    PROPERTY(a_plan_that_is_printed_is_that_of_the_corrected_figures),
    PROPERTY(without_auto_nothing_is_watched),
    PROPERTY(calls_on_which_no_codec_acts_do_not_count),
};
RUN_PROPERTIES(mpi_property_main, properties)

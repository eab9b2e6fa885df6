/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 5 */

/* An unchanged MPI program whose sums do not wait for its slowest rank: those with error feedback,
 * which are found out from the repeating pattern of calls. The last rank is late, because it waits
 * until the others have made their calls. script_interposer_policies.sh runs this with another
 * policy. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interpose/interposer_probe.h"

enum { BUFFERS = 3, COUNT_MAX = 8000, TOGETHER = 20, AHEAD = 5 };

static const int counts[BUFFERS] = {5000, 8000, 5000};

static void before(void) {
  set_default("LCOMM_POLICY", "net=topk:0.05+ef min=1K quorum=50% late=0");
}

/* Of this rank: what came into sums, and what came out of them. */
static double came[BUFFERS][COUNT_MAX], left[BUFFERS][COUNT_MAX];

static void sum_one(MPI_Comm comm, int buffer, int step) {
  static float value[COUNT_MAX];
  fill_probe(value, (size_t)counts[buffer], (uint64_t)(100 * buffer + step + 7 * mpi_rank + 1));
  for (int i = 0; i < counts[buffer]; i++) {
    came[buffer][i] += (double)value[i];
  }
  MPI_Allreduce(MPI_IN_PLACE, value, counts[buffer], MPI_FLOAT, MPI_SUM, comm);
  for (int i = 0; i < counts[buffer]; i++) {
    left[buffer][i] += (double)value[i];
  }
}

static void make_steps(MPI_Comm comm, int first, int steps) {
  for (int step = first; step < first + steps; step++) {
    for (int buffer = 0; buffer < BUFFERS; buffer++) {
      sum_one(comm, buffer, step);
    }
  }
}

/* The others must not wait for the late one, or nobody would go on. */
static void make_steps_apart(MPI_Comm comm) {
  int token = 0, late = mpi_size - 1;
  for (int i = 0; mpi_rank == late && i < late; i++) {
    PMPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  make_steps(comm, TOGETHER, AHEAD);
  if (mpi_rank != late) {
    PMPI_Send(&token, 1, MPI_INT, late, 1, MPI_COMM_WORLD);
  }
}

/* Calls that break the pattern, so that each of the buffers is summed without it. */
static void break_pattern(MPI_Comm comm) {
  static const int order[] = {1, 1, 0, 2, 0, 2};
  for (int i = 0; i < 6; i++) {
    sum_one(comm, order[i], 50 + i);
  }
}

static void require_whole(int first, int last) {
  static double wanted[COUNT_MAX];
  double error = 0, norm = 1e-300;
  memset(wanted, 0, sizeof wanted);
  for (int buffer = first; buffer <= last; buffer += 2) {
    for (int i = 0; i < counts[buffer]; i++) {
      wanted[i] += came[buffer][i];
    }
  }
  sum_everywhere(wanted, (uint64_t)counts[first]);
  for (int i = 0; i < counts[first]; i++) {
    double got = left[first][i] + (last > first ? left[last][i] : 0);
    error += (got - wanted[i]) * (got - wanted[i]);
    norm += wanted[i] * wanted[i];
  }
  require(sqrt(error / norm) < 1e-5, "buffers %d to %d are off by %g", first, last,
          sqrt(error / norm));
}

static void a_late_rank_holds_up_nobody_and_nothing_is_lost(void) {
  MPI_Comm comm;
  if (!compresses(MPI_COMM_WORLD)) {
    skip_property("nothing is compressed between these ranks");
    return;
  }
  memset(came, 0, sizeof came);
  memset(left, 0, sizeof left);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  make_steps(comm, 0, TOGETHER);
  PMPI_Barrier(MPI_COMM_WORLD);
  make_steps_apart(comm);
  break_pattern(comm);
  for (int buffer = 0; buffer < BUFFERS; buffer++) {
    require(same_everywhere(left[buffer], sizeof left[buffer]), "buffer %d differs", buffer);
  }
  require_whole(1, 1);
  require_whole(0, 2); /* of one length: which is which may change */
  MPI_Comm_free(&comm);
}

/* Sums without error feedback have nowhere to keep what comes late. */
static void other_sums_wait_for_all(void) {
  for (int i = 0; i < 20; i++) {
    int rank = mpi_rank, sum = 0;
    double real = 1;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &real, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    require(sum == mpi_size * (mpi_size - 1) / 2 && real == mpi_size, "sums of %d and %g", sum,
            real);
  }
}

static const mpi_property properties[] = {
    PROPERTY(a_late_rank_holds_up_nobody_and_nothing_is_lost),
    PROPERTY(other_sums_wait_for_all),
};
RUN_INTERPOSER_PROPERTIES(before, properties)

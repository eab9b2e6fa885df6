/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 5 */

/* Error feedback through the interposer: which buffer is which is found out from the
 * repeating pattern of calls. What a step did not send comes with later ones, and at
 * the latest when the pattern changes. script_interposer_policies.sh runs this with other policies.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interpose/interposer_probe.h"
#include "tests/interpose/interposer_said.h"

enum { BUFFERS = 3, COUNT_MAX = 8000, STEPS = 60 };

/* Two are as long as each other: only their position tells them apart. */
static const int counts[BUFFERS] = {5000, 8000, 5000};

static void before(void) {
  set_default("LCOMM_POLICY", "net=topk:0.05+ef min=1K");
  use_control_file();
}

/* What was summed on a communicator, and what should have been. */
typedef struct sums {
  MPI_Comm comm;
  double got[BUFFERS][COUNT_MAX], want[BUFFERS][COUNT_MAX];
  float value[BUFFERS][COUNT_MAX], exact[BUFFERS][COUNT_MAX];
} sums;

static sums all;

static void begin_sums(void) {
  memset(&all, 0, sizeof(all));
  MPI_Comm_dup(MPI_COMM_WORLD, &all.comm);
}

static void end_sums(void) {
  MPI_Comm_free(&all.comm);
}

static bool has_feedback(void) {
  const char *policy = getenv("LCOMM_POLICY");
  return policy && strstr(policy, "+ef");
}

static bool needs_feedback(void) {
  if (!has_feedback()) {
    skip_property("the policy has no error feedback");
  }
  return has_feedback();
}

/* The gradient of a buffer: the same in every step. */
static void prepare(int buffer) {
  fill_probe(all.value[buffer], (size_t)counts[buffer], (uint64_t)(100 * buffer + mpi_rank + 1));
  PMPI_Allreduce(all.value[buffer], all.exact[buffer], counts[buffer], MPI_FLOAT, MPI_SUM,
                 all.comm);
}

static void add_up(int buffer) {
  for (int i = 0; i < counts[buffer]; i++) {
    all.got[buffer][i] += (double)all.value[buffer][i];
    all.want[buffer][i] += (double)all.exact[buffer][i];
  }
  require(same_everywhere(all.value[buffer], (size_t)counts[buffer] * sizeof(float)),
          "ranks differ in buffer %d", buffer);
}

static void sum_one(int buffer) {
  prepare(buffer);
  MPI_Allreduce(MPI_IN_PLACE, all.value[buffer], counts[buffer], MPI_FLOAT, MPI_SUM, all.comm);
  add_up(buffer);
}

static void sum_in_order(const int *order, int calls) {
  for (int i = 0; i < calls; i++) {
    sum_one(order[i]);
  }
}

static void make_steps(int steps) {
  static const int order[] = {0, 1, 2};
  for (int step = 0; step < steps; step++) {
    sum_in_order(order, 3);
  }
}

/* How far the totals of some buffers together are off, relative to what they should be. */
static double error_of(int first, int last) {
  double error = 0, norm = 1e-300;
  for (int i = 0; i < counts[first]; i++) {
    double got = 0, want = 0;
    for (int buffer = first; buffer <= last; buffer += 2) {
      got += all.got[buffer][i];
      want += all.want[buffer][i];
    }
    error += (got - want) * (got - want);
    norm += want * want;
  }
  return sqrt(error / norm);
}

/* The share of the last result that is not zero. */
static double density_of(int buffer) {
  int count = 0;
  for (int i = 0; i < counts[buffer]; i++) {
    count += all.value[buffer][i] != 0;
  }
  return (double)count / counts[buffer];
}

/* Calls that break the pattern, so that each of the buffers is summed without it. */
static void break_pattern(void) {
  static const int order[] = {1, 1, 0, 2, 0, 2};
  sum_in_order(order, 6);
}

/* --------------------------------------------------------------- properties */

static bool is_sparse(void) {
  const char *policy = getenv("LCOMM_POLICY");
  return compresses(MPI_COMM_WORLD) && policy && strstr(policy, "topk");
}

static void require_mass(int buffer) {
  double error = error_of(buffer, buffer), density = density_of(buffer);
  if (!is_sparse()) {
    require(error < 0.02, "buffer %d is off by %g", buffer, error);
    return;
  }
  require(density > 0 && density < 0.25, "buffer %d has %g of its values", buffer, density);
  require(!has_feedback() || error < 0.35, "buffer %d is off by %g", buffer, error);
  require(has_feedback() || error > 0.7, "buffer %d is off by only %g", buffer, error);
}

static void mass_is_kept_over_many_steps(void) {
  begin_sums();
  make_steps(STEPS);
  for (int buffer = 0; buffer < BUFFERS; buffer++) {
    require_mass(buffer);
  }
  end_sums();
}

static void require_all_flushed(const char *when) {
  double alone = error_of(1, 1), together = error_of(0, 2);
  require(alone < 1e-5, "%s: the second buffer is off by %g", when, alone);
  require(together < 1e-5, "%s: the two others are off by %g", when, together);
}

static void a_changed_pattern_flushes_residuals(void) {
  begin_sums();
  make_steps(20);
  double carried = error_of(1, 1);
  require(!is_sparse() || carried > 0.05, "only %g is carried", carried);
  break_pattern();
  require_all_flushed("after the change");
  end_sums();
}

static void a_pattern_that_comes_back_is_found_again(void) {
  begin_sums();
  for (int round = 0; round < 3; round++) {
    make_steps(25);
    require(!is_sparse() || density_of(1) < 0.25, "round %d: nothing is compressed", round);
    break_pattern();
    require_all_flushed("after a round");
  }
  end_sums();
}

static void calls_without_a_pattern_are_exact(void) {
  static float value[COUNT_MAX], exact[COUNT_MAX];
  begin_sums();
  for (int i = 0; i < 60; i++) {
    int count = 1000 + 37 * i;
    fill_probe(value, (size_t)count, (uint64_t)mpi_rank);
    PMPI_Allreduce(value, exact, count, MPI_FLOAT, MPI_SUM, all.comm);
    MPI_Allreduce(MPI_IN_PLACE, value, count, MPI_FLOAT, MPI_SUM, all.comm);
    require(memcmp(value, exact, (size_t)count * sizeof(float)) == 0, "call %d is not exact", i);
  }
  end_sums();
}

/* Small sums, such as the loss, come between without breaking anything. */
static void small_sums_do_not_break_the_pattern(void) {
  begin_sums();
  for (int step = 0; step < 20; step++) {
    for (int i = 0; i < step % 3; i++) {
      float loss = 1;
      int flag = 1;
      MPI_Allreduce(MPI_IN_PLACE, &loss, 1, MPI_FLOAT, MPI_SUM, all.comm);
      MPI_Allreduce(MPI_IN_PLACE, &flag, 1, MPI_INT, MPI_MAX, all.comm);
      require(loss == (float)mpi_size && flag == 1, "the loss is %g", (double)loss);
    }
    make_steps(1);
  }
  require(!is_sparse() || density_of(1) < 0.25, "nothing is compressed");
  end_sums();
}

/* Three at a time without blocking: the same as one after the other. */
static void calls_without_blocking_are_the_same(void) {
  static float results[20][BUFFERS][COUNT_MAX];
  MPI_Request requests[BUFFERS];
  begin_sums();
  for (int step = 0; step < 20; step++) {
    make_steps(1);
    memcpy(results[step], all.value, sizeof(all.value));
  }
  end_sums();
  begin_sums();
  for (int step = 0; step < 20; step++) {
    for (int i = 0; i < BUFFERS; i++) {
      prepare(i);
      MPI_Iallreduce(MPI_IN_PLACE, all.value[i], counts[i], MPI_FLOAT, MPI_SUM, all.comm,
                     &requests[i]);
    }
    MPI_Waitall(BUFFERS, requests, MPI_STATUSES_IGNORE);
    require(memcmp(results[step], all.value, sizeof(all.value)) == 0, "step %d differs", step);
  }
  end_sums();
}

/* After 20 steps the control file says `words`, and 20 steps later nothing is carried any more. */
static void flush_by_control_file(const char *words) {
  begin_sums();
  make_steps(20);
  tell_interposer(words);
  make_steps(20);
  require_all_flushed(words);
  tell_interposer(NULL);
}

static void switching_off_flushes_residuals(void) {
  flush_by_control_file("off");
  require(density_of(1) > 0.9, "calls are still compressed");
  make_steps(40);
  require(!is_sparse() || density_of(1) < 0.25, "on again, nothing is compressed");
  end_sums();
}

static void another_policy_flushes_residuals(void) {
  flush_by_control_file("policy net=none min=1K");
  end_sums();
}

static void sum_without_blocking(int buffer) {
  MPI_Request request;
  prepare(buffer);
  MPI_Iallreduce(MPI_IN_PLACE, all.value[buffer], counts[buffer], MPI_FLOAT, MPI_SUM, all.comm,
                 &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Two of one length in turn look like one buffer. */
static int count_warnings(void (*sum)(int buffer)) {
  int expected = mpi_rank == 0 && compresses(all.comm);
  listening to = listen_begin();
  for (int i = 0; i < 40; i++) {
    sum(i % 2 == 0 ? 0 : 2);
  }
  return listen_end(to, "several buffers in turn", expected) - expected;
}

static void buffers_that_take_turns_are_warned_of_once(void) {
  const char *policy = getenv("LCOMM_POLICY");
  if (!has_feedback() || strstr(policy, "step=")) {
    skip_property("the policy has no error feedback, or says how long a step is");
    return;
  }
  begin_sums();
  require(count_warnings(sum_one) == 0, "not one warning of calls that block");
  end_sums();
  begin_sums();
  require(count_warnings(sum_without_blocking) == 0, "not one warning of calls that do not");
  end_sums();
}

static const mpi_property properties[] = {
    PROPERTY(mass_is_kept_over_many_steps),
    PROPERTY_WHERE(needs_feedback, a_changed_pattern_flushes_residuals),
    PROPERTY_WHERE(needs_feedback, a_pattern_that_comes_back_is_found_again),
    PROPERTY_WHERE(needs_feedback, calls_without_a_pattern_are_exact),
    PROPERTY(small_sums_do_not_break_the_pattern),
    PROPERTY(calls_without_blocking_are_the_same),
    PROPERTY_WHERE(needs_feedback, switching_off_flushes_residuals),
    PROPERTY_WHERE(needs_feedback, another_policy_flushes_residuals),
    PROPERTY(buffers_that_take_turns_are_warned_of_once),
};
RUN_INTERPOSER_PROPERTIES(before, properties)

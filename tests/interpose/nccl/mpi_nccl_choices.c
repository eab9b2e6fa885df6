/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* libcomm makes NCCL's calls: what the policy chooses, error feedback of sums that name no buffer,
 * and the table at the end. */

#include "libcomm/interpose/interpose_report.h"
#include "tests/engine/graph_launch.h"
#include "tests/interpose/nccl/nccl_float_sums.h"

/* ---------------------------------------------------------- error feedback */

enum { STEPS = 24, EACH = 1500 };

static double applied[ROOM], expected[ROOM];

static void put_gradient(const world *it, int step, int count) {
  static float values[ROOM];
  for (int rank = 0; rank < mpi_size; rank++) {
    for (int i = 0; i < count; i++) {
      float value = (float)((i * 37 + rank * 11 + step * 101) % 1009 - 504) / 64;
      expected[i] += (double)value;
      values[i] = rank == mpi_rank ? value : values[i];
    }
  }
  to_device(it->from, values, (size_t)count * sizeof(float));
}

/* The largest difference so far of `count` elements from `first` on, which are the first here. */
static double largest_difference(int first, int count) {
  double largest = 0;
  for (int i = 0; i < count; i++) {
    double difference = fabs(applied[i] - expected[first + i]);
    largest = difference > largest ? difference : largest;
  }
  return largest;
}

static void all_reduce(const world *it) {
  fine(ncclAllReduce(it->from, it->to, SUM_COUNT, ncclFloat32, ncclSum, it->comm, it->stream));
  add_from_device(applied, it->to, SUM_COUNT, it->stream);
}

static void in_a_group(const world *it) {
  fine(ncclGroupStart());
  fine(ncclAllReduce(it->from, it->to, SUM_COUNT, ncclFloat32, ncclSum, it->comm, it->stream));
  fine(ncclGroupEnd());
  add_from_device(applied, it->to, SUM_COUNT, it->stream);
}

static void reduce_scatter(const world *it) {
  fine(ncclReduceScatter(it->from, it->to, EACH, ncclFloat32, ncclSum, it->comm, it->stream));
  add_from_device(applied, it->to, EACH, it->stream);
}

/* What is left out of a step is in later ones, and the rest when the pattern breaks. `parts`: each
 * rank gets its own. */
static void nothing_is_lost(const char *policy, void (*sum)(const world *it), int parts) {
  world it = begin(policy);
  int mine = parts > 1 ? EACH : SUM_COUNT, first = parts > 1 ? EACH * mpi_rank : 0;
  memset(applied, 0, sizeof(applied));
  memset(expected, 0, sizeof(expected));
  for (int step = 0; step < STEPS; step++) {
    put_gradient(&it, step, mine * parts);
    sum(&it);
    require(step > 1 || largest_difference(first, mine) < 1e-3, "step %d is not exact", step);
  }
  require(largest_difference(first, mine) > 1e-3, "%s: all sums are exact", policy);
  fine(ncclAllReduce(it.from, it.to, 2000, ncclFloat32, ncclSum, it.comm, it.stream));
  put_gradient(&it, STEPS, mine * parts);
  sum(&it);
  require(largest_difference(first, mine) < 0.05, "%s: %g is lost", policy,
          largest_difference(first, mine));
  end(&it);
}

static void what_is_left_out_comes_later(void) {
  nothing_is_lost("net=topk:0.05+ef min=1K", all_reduce, 1);
  nothing_is_lost("net=int8+ef min=1K", all_reduce, 1);
}

static void in_groups_as_well(void) {
  nothing_is_lost("net=topk:0.05+ef min=1K", in_a_group, 1);
}

static void parts_that_ranks_get_are_made_up_for(void) {
  nothing_is_lost("net=topk:0.05+ef min=1K", reduce_scatter, mpi_size);
}

/* With the pattern known, for one rank, with a factor, and in a graph. */
static void sums_without_a_residual_are_exact(void) {
  world it = begin("net=topk:0.05+ef min=1K");
  launchable graph;
  ncclRedOp_t op = ncclSum;
  float one = 1;
  put_floats(it.from, mpi_rank, SUM_COUNT);
  for (int step = 0; step < STEPS; step++) {
    fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream));
  }
  (void)holds_sum(it.stream, it.to, 0, 0, mpi_size, true);
  fine(ncclRedOpCreatePreMulSum(&op, &one, ncclFloat32, ncclScalarHostImmediate, it.comm));
  fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, op, it.comm, it.stream));
  (void)holds_sum(it.stream, it.to, 0, SUM_COUNT, mpi_size, true);
  fine(ncclReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, 0, it.comm, it.stream));
  if (mpi_rank == 0) {
    (void)holds_sum(it.stream, it.to, 0, SUM_COUNT, mpi_size, true);
  }
  check(emulated_capture_begin(it.stream));
  fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream));
  end_capture(&graph, it.stream);
  launch(&graph, it.stream);
  (void)holds_sum(it.stream, it.to, 0, SUM_COUNT, mpi_size, true);
  free_graph(&graph);
  end(&it);
}

/* ---------------------------------------------------------------- the table */

static void has_words(const char *const *words, const char *policy) {
  static char text[1 << 16];
  lcomm_interpose_report_about about = {.ranks = mpi_size,
                                        .nodes = mpi_size,
                                        .host = "here",
                                        .policy = policy,
                                        .library = "libcomm-nccl"};
  (void)lcomm_interpose_report_print(&about, text, sizeof(text));
  for (; *words; words++) {
    require(strstr(text, *words) != NULL, "there is no '%s' in:\n%s", *words, text);
  }
  require(!strstr(text, "NCCL"), "another library is named in:\n%s", text);
}

static void the_table_says_what_became_of_sums(void) {
  static const char policy[] = "net=int8 min=1K";
  static const char *const words[] = {"what became of",
                                      "the policy chose\n",
                                      "ncclAllReduce",
                                      " float32 ",
                                      " avg ",
                                      " lossy\n",
                                      "ncclReduceScatter",
                                      "ncclReduce ",
                                      "exact: ",
                                      " int32 ",
                                      " prod ",
                                      "the host combines",
                                      "user-defined",
                                      "Between nodes this rank sent",
                                      " saved",
                                      NULL};
  lcomm_interpose_report_clear();
  world it = begin(policy);
  ncclRedOp_t op = ncclSum;
  float one = 1;
  put_floats(it.from, mpi_rank, SUM_COUNT);
  fine(ncclRedOpCreatePreMulSum(&op, &one, ncclFloat32, ncclScalarHostImmediate, it.comm));
  fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclAvg, it.comm, it.stream));
  fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, op, it.comm, it.stream));
  fine(ncclReduceScatter(it.from, it.to, EACH, ncclFloat32, ncclSum, it.comm, it.stream));
  fine(ncclReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, 0, it.comm, it.stream));
  fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclInt32, ncclMax, it.comm, it.stream));
  fine(ncclAllReduce(it.from, it.to, 10, ncclFloat32, ncclProd, it.comm, it.stream));
  has_words(words, policy);
  check(device->stream.finish(it.stream));
  end(&it);
  lcomm_interpose_report_clear();
}

static void the_table_tells_error_feedback(void) {
  static const char policy[] = "net=topk:0.05+ef min=1K";
  static const char *const words[] = {" lossy+ef\n", "exact: error feedback waits until",
                                      "exact: a sum with factors, or for one rank", NULL};
  lcomm_interpose_report_clear();
  world it = begin(policy);
  put_floats(it.from, mpi_rank, SUM_COUNT);
  for (int step = 0; step < STEPS; step++) {
    fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream));
  }
  fine(ncclReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, 0, it.comm, it.stream));
  has_words(words, policy);
  check(device->stream.finish(it.stream));
  end(&it);
  lcomm_interpose_report_clear();
}

static const mpi_property properties[] = {
    PROPERTY(what_is_left_out_comes_later),
    PROPERTY(in_groups_as_well),
    PROPERTY(parts_that_ranks_get_are_made_up_for),
    PROPERTY(sums_without_a_residual_are_exact),
    PROPERTY(the_table_says_what_became_of_sums),
    PROPERTY(the_table_tells_error_feedback),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

static int choices_main(int *argc, char ***argv, const mpi_property *all, int count) {
  setenv("LCOMM_STATS", "exit", 1);
  return alone_main(argc, argv, all, count);
}

RUN_PROPERTIES(choices_main, properties)

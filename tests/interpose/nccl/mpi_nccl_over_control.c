/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* Over an NCCL: another policy without a restart. */

#include "tests/interpose/nccl/nccl_control_file.h"
#include "tests/interpose/nccl/nccl_over_world.h"

/* So many sums, as many as lie between two looks at the file; whose are they, and how exact? */
static void all_are(world *it, bool libcomms, bool exact) {
  enum { SUMS = SUMS_BETWEEN_LOOKS };
  (void)sums_below();
  for (int i = 0; i < SUMS; i++) {
    put_floats(it->from, mpi_rank, SUM_COUNT);
    sum_is_right(it, it->to, exact);
  }
  int below = sums_below();
  require(below == (libcomms ? 0 : SUMS), "NCCL has made %d", below);
}

static void the_ranks_obey_at_the_same_sum(void) {
  static const struct {
    const char *words;
    bool libcomms, exact;
  } cases[] = {{"on", true, false},
               {"off", false, true},
               {"on", true, false},
               {"policy net=none min=1K", true, true},
               {"policy net=nonsense", true, true},
               {"off", false, true},
               {"on", true, false},
               {"what is this", true, false}};
  say("on");
  world it = begin_over("net=int8 min=1K");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    say(cases[i].words);
    all_are(&it, cases[i].libcomms, cases[i].exact);
  }
  end(&it);
}

/* The words are read at the end of the group, for the sums behind it. */
static void in_groups_they_obey_at_the_end(void) {
  enum { SUMS = 17, SHORT = 300 };
  say("on");
  world it = begin_over("net=int8 min=1K");
  for (int round = 0; round < 3; round++) {
    say(round == 0 ? "off" : "on");
    (void)sums_below();
    put_floats(it.from, mpi_rank, SHORT);
    fine(ncclGroupStart());
    for (int i = 0; i < SUMS; i++) {
      fine(ncclAllReduce(it.from, it.to, SHORT, ncclFloat32, ncclSum, it.comm, it.stream));
    }
    fine(ncclGroupEnd());
    (void)holds_sum(it.stream, it.to, 0, SHORT, mpi_size, round == 1);
    require(sums_below() == (round == 1 ? SUMS : 0), "round %d is not as the one before said",
            round);
  }
  end(&it);
}

/* What was captured goes on with its policy, whatever came since. */
static void graphs_of_a_policy_before_are_replayed(void) {
  void *graph = NULL, *executable = NULL;
  say("on");
  world it = begin_over("net=none min=1K");
  check(emulated_capture_begin(it.stream));
  fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream));
  check(emulated_capture_end(it.stream, &graph));
  check(emulated_graph_instantiate(graph, &executable));
  put_floats(it.from, mpi_rank, SUM_COUNT);
  for (int i = 1; i < SUMS_BETWEEN_LOOKS; i++) { /* the captured one was the first */
    sum_is_right(&it, it.to, true);
  }
  for (int round = 0; round < 3; round++) {
    say(round % 2 == 0 ? "policy net=int8 min=1K" : "on");
    all_are(&it, true, round % 2 != 0);
    put_floats(it.from, mpi_rank, SUM_COUNT);
    to_device(it.to, it.from, SUM_COUNT * sizeof(float)); /* no result of a sum before */
    check(emulated_graph_launch(executable, it.stream));
    (void)holds_sum(it.stream, it.to, 0, SUM_COUNT, mpi_size, true);
  }
  check(emulated_executable_destroy(executable));
  check(emulated_graph_destroy(graph));
  end(&it);
}

static const mpi_property properties[] = {
    PROPERTY(the_ranks_obey_at_the_same_sum),           PROPERTY(in_groups_they_obey_at_the_end),
    PROPERTY(graphs_of_a_policy_before_are_replayed),   PROPERTY(the_file_is_removed),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

static int control_main(int *argc, char ***argv, const mpi_property *all, int count) {
  name_control_file();
  return over_main(argc, argv, all, count);
}

RUN_PROPERTIES(control_main, properties)

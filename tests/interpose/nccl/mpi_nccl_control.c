/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* libcomm makes NCCL's calls: another policy without a restart. */

#include "tests/engine/graph_launch.h"
#include "tests/interpose/nccl/nccl_control_sums.h"

/* ------------------------------------------------------------------ obeying */

static void the_ranks_obey_at_the_same_sum(void) {
  static const struct {
    const char *words;
    bool is_exact;
  } cases[] = {{"on", false},
               {"off", true},
               {"on", false},
               {"policy net=none min=1K", true},
               {"policy net=nonsense", true},
               {"policy net=bf16 min=1K", false},
               {"off", true},
               {"policy net=int8 min=1K", false},
               {"policy net=none min=1K", true},
               {"what is this", true},
               {"on", false}};
  say("on");
  world it = begin(lossy);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    say(cases[i].words);
    (void)all_are(&it, cases[i].is_exact);
  }
  end(&it);
}

/* Not of the one before, and not of another one. */
static void sums_have_the_bits_of_the_policy_in_force(void) {
  uint64_t hashes[4];
  static const char *const policies[] = {"net=int8 min=1K", "net=bf16 min=1K"};
  for (int i = 0; i < 2; i++) {
    say("on");
    world it = begin(policies[i]);
    hashes[i] = all_are(&it, false);
    say(i == 0 ? "policy net=bf16 min=1K" : "policy net=int8 min=1K");
    hashes[3 - i] = all_are(&it, false);
    end(&it);
  }
  require(hashes[0] == hashes[2] && hashes[1] == hashes[3] && hashes[0] != hashes[1],
          "other bits than those of a communicator that was made with the policy");
}

/* The words are read at the end of the group, for the sums behind it. */
static void in_groups_they_obey_at_the_end(void) {
  enum { SUMS = 17, SHORT = 300 };
  say("on");
  world it = begin(lossy), other = begin(lossy);
  for (int round = 0; round < 3; round++) {
    say(round == 0 ? "off" : "on");
    put_floats(it.from, mpi_rank, SHORT);
    fine(ncclGroupStart());
    for (int i = 0; i < SUMS; i++) {
      fine(ncclAllReduce(it.from, it.to, SHORT, ncclFloat32, ncclSum, it.comm, it.stream));
      fine(ncclAllReduce(it.from, other.to, SHORT, ncclFloat32, ncclSum, other.comm, it.stream));
    }
    fine(ncclGroupEnd());
    (void)holds_sum(it.stream, it.to, 0, SHORT, mpi_size, round == 1);
    (void)holds_sum(it.stream, other.to, 0, SHORT, mpi_size, round == 1);
  }
  end(&it);
  end(&other);
}

/* Sums that are not counted are no sums to look at; a group that is simulated makes none. */
static void other_calls_do_not_count(void) {
  say("on");
  world it = begin(lossy);
  ncclSimInfo_t simulation = {.size = sizeof(simulation)};
  (void)sum(&it, false);
  say("off");
  fine(ncclGroupStart());
  for (int i = 0; i < 20 && mpi_rank == 0; i++) {
    fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream));
  }
  fine(ncclGroupSimulateEnd(&simulation));
  for (int i = 0; i < 20; i++) {
    fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclInt32, ncclSum, it.comm, it.stream));
    fine(ncclAllReduce(it.from, it.to, 100, ncclFloat32, ncclSum, it.comm, it.stream));
    fine(ncclReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, 0, it.comm, it.stream));
    fine(ncclAllReduce(it.from, it.to, 600, ncclFloat32, ncclProd, it.comm, it.stream));
  }
  for (int i = 1; i < SUMS_BETWEEN_LOOKS; i++) {
    (void)sum(&it, false);
  }
  (void)sum(&it, true);
  end(&it);
}

/* The n-th send is for the n-th receive, whatever lies between. */
static void messages_may_cross_a_change(void) {
  say("on");
  world it = begin(lossy);
  int right = (mpi_rank + 1) % mpi_size, left = (mpi_rank + mpi_size - 1) % mpi_size;
  int *received = it.to + LONGEST;
  for (int round = 0; round < 2; round++) {
    say(round == 0 ? exact : "off");
    put(received, 100 * round + mpi_rank, 1, 1000);
    check(device->stream.finish(it.stream));
    if (mpi_rank == 0) {
      fine(ncclSend(received, 1000, ncclInt32, right, it.comm, it.stream));
    }
    (void)all_are(&it, true);
    if (mpi_rank > 0) {
      fine(ncclSend(received, 1000, ncclInt32, right, it.comm, it.stream));
    }
    fine(ncclRecv(it.to, 1000, ncclInt32, left, it.comm, it.stream));
    holds(&it, it.to, 100 * round + left, 1, 1000);
  }
  end(&it);
}

/* ---------------------------------------------------------- error feedback */

static double applied[SUM_COUNT];

/* After so many sums. */
static double largest_difference(int steps) {
  double largest = 0;
  for (int i = 0; i < SUM_COUNT; i++) {
    double difference = applied[i];
    for (int rank = 0; rank < mpi_size; rank++) {
      difference -= steps * (double)value_of(rank, i);
    }
    difference = difference < 0 ? -difference : difference;
    largest = difference > largest ? difference : largest;
  }
  return largest;
}

static void step(const world *it) {
  put_floats(it->from, mpi_rank, SUM_COUNT);
  fine(ncclAllReduce(it->from, it->to, SUM_COUNT, ncclFloat32, ncclSum, it->comm, it->stream));
  add_from_device(applied, it->to, SUM_COUNT, it->stream);
}

/* What was left out is in the first sum under other words; all behind it are exact, until error
 * feedback is in force again. */
static void what_is_left_out_is_flushed(const char *words) {
  enum { STEPS = 2 * SUMS_BETWEEN_LOOKS };
  say("on");
  world it = begin("net=int8+ef min=1K");
  for (int round = 0; round < 2; round++) {
    memset(applied, 0, sizeof(applied));
    for (int i = 0; i < STEPS; i++) {
      step(&it);
    }
    require(largest_difference(STEPS) > 1e-3, "all sums are exact");
    say(words);
    step(&it);
    require(largest_difference(STEPS + 1) < 0.05, "%s: %g is lost", words,
            largest_difference(STEPS + 1));
    for (int i = 1; i < SUMS_BETWEEN_LOOKS; i++) {
      (void)sum(&it, true);
    }
    say("on");
  }
  end(&it);
}

static void residuals_are_flushed_when_it_is_switched_off(void) {
  what_is_left_out_is_flushed("off");
}

static void residuals_are_flushed_when_the_policy_is_replaced(void) {
  what_is_left_out_is_flushed(exact);
}

/* ------------------------------------------------------------------- graphs */

static void captured_sum(launchable *graph, const world *it, int *to) {
  check(emulated_capture_begin(it->stream));
  fine(ncclAllReduce(it->from, to, SUM_COUNT, ncclFloat32, ncclSum, it->comm, it->stream));
  end_capture(graph, it->stream);
}

static void replay_is(const launchable *graph, const world *it, int *to, bool is_exact) {
  put(to, -1, 0, SUM_COUNT);
  put_floats(it->from, mpi_rank, SUM_COUNT);
  launch(graph, it->stream);
  is_equal_everywhere(holds_sum(it->stream, to, 0, SUM_COUNT, mpi_size, is_exact));
}

/* Each is captured at a sum that looks at the file; the next look is at one that is not captured,
 * so that communicators go. */
static void graphs_keep_what_they_were_captured_with(void) {
  static const char *const words[] = {"on", "off", "policy net=bf16 min=1K", exact, "on"};
  enum { GRAPHS = sizeof words / sizeof *words };
  launchable graphs[GRAPHS];
  world it = begin(lossy);
  for (int i = 0; i < GRAPHS; i++) {
    int *to = it.to + (i % 2) * LONGEST;
    say(words[i]);
    captured_sum(&graphs[i], &it, to);
    for (int k = 1; k < 2 * SUMS_BETWEEN_LOOKS; k++) {
      (void)sum(&it, i == 1 || i == 3);
    }
    for (int k = 0; k <= i; k++) {
      replay_is(&graphs[k], &it, it.to + (k % 2) * LONGEST, k == 1 || k == 3);
    }
  }
  for (int i = 0; i < GRAPHS; i++) {
    free_graph(&graphs[i]);
  }
  end(&it);
}

static const mpi_property properties[] = {
    PROPERTY(the_ranks_obey_at_the_same_sum),
    PROPERTY(sums_have_the_bits_of_the_policy_in_force),
    PROPERTY(in_groups_they_obey_at_the_end),
    PROPERTY(other_calls_do_not_count),
    PROPERTY(messages_may_cross_a_change),
    PROPERTY(residuals_are_flushed_when_it_is_switched_off),
    PROPERTY(residuals_are_flushed_when_the_policy_is_replaced),
    PROPERTY(graphs_keep_what_they_were_captured_with),
    PROPERTY(the_file_is_removed),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

RUN_PROPERTIES(control_main, properties)

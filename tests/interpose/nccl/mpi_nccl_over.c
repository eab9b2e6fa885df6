/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Over an NCCL: the sums that the policy chooses are libcomm's, and all else is as it was. */

#include "tests/interpose/nccl/nccl_over_world.h"

/* --------------------------------------------------------------- what is whose */

static void chosen_sums_are_compressed_and_equal_on_all_ranks(void) {
  world it = begin_over(lossy);
  bool is_alone = mpi_size == 1;
  (void)sums_below();
  put_floats(it.from, mpi_rank, SUM_COUNT);
  sum_is_right(&it, it.to, is_alone);
  sum_is_right(&it, it.from, is_alone);
  require(sums_below() == (is_alone ? 2 : 0), "NCCL has made some of them, or none");
  end(&it);
}

static void exact_policies_give_exact_sums_of_libcomms(void) {
  world it = begin_over("net=none min=1K");
  (void)sums_below();
  put_floats(it.from, mpi_rank, SUM_COUNT);
  sum_is_right(&it, it.to, true);
  require(sums_below() == (mpi_size == 1), "NCCL has made it");
  end(&it);
}

static void parts_are_compressed_by_their_own_length(void) {
  enum { EACH = 1000, FEW = 200 };
  world it = begin_over(lossy);
  (void)sums_below();
  put_floats(it.from, mpi_rank, EACH * mpi_size);
  fine(ncclReduceScatter(it.from, it.to, EACH, ncclFloat32, ncclSum, it.comm, it.stream));
  (void)holds_sum(it.stream, it.to, EACH * mpi_rank, EACH, mpi_size, mpi_size == 1);
  require(sums_below() == (mpi_size == 1), "NCCL has made it");
  fine(ncclReduceScatter(it.from, it.to, FEW, ncclFloat32, ncclSum, it.comm, it.stream));
  (void)holds_sum(it.stream, it.to, FEW * mpi_rank, FEW, mpi_size, true);
  require(sums_below() == 1, "a short part is NCCL's");
  end(&it);
}

static void what_is_no_long_sum_of_floats_is_nccls(void) {
  enum { SHORT = 255, LONG = 5000 };
  world it = begin_over("net=int8 min=1K match=op=max,dtype=int32");
  int ranks = mpi_size * (mpi_size - 1) / 2;
  (void)sums_below();
  put_floats(it.from, mpi_rank, SHORT);
  fine(ncclAllReduce(it.from, it.to, SHORT, ncclFloat32, ncclSum, it.comm, it.stream));
  (void)holds_sum(it.stream, it.to, 0, SHORT, mpi_size, true);
  put(it.from, mpi_rank, 1, LONG);
  fine(ncclAllReduce(it.from, it.to, LONG, ncclInt32, ncclSum, it.comm, it.stream));
  holds(&it, it.to, ranks, mpi_size, LONG);
  fine(ncclAllReduce(it.from, it.to, LONG, ncclInt32, ncclMax, it.comm, it.stream));
  holds(&it, it.to, mpi_size - 1, 1, LONG);
  put_floats(it.from, mpi_rank, LONG);
  fine(ncclAllReduce(it.from, it.to, LONG, ncclFloat32, ncclMax, it.comm, it.stream));
  check(device->stream.finish(it.stream));
  require(sums_below() == 4, "libcomm has made one");
  put(it.from, mpi_rank, 1, LONG / mpi_size);
  fine(ncclAllGather(it.from, it.to, LONG / 4, ncclFloat32, it.comm, it.stream));
  fine(ncclBroadcast(it.from, it.to, LONG / 4, ncclFloat32, 0, it.comm, it.stream));
  require(atomic_exchange(&small->moves, 0) == 2, "libcomm has moved data");
  end(&it);
}

static void replay_twice(const world *it, void *executable) {
  for (int replay = 0; replay < 2; replay++) {
    put_floats(it->from, mpi_rank, SUM_COUNT);
    check(emulated_graph_launch(executable, it->stream));
    is_equal_everywhere(holds_sum(it->stream, it->to, 0, SUM_COUNT, mpi_size, false));
  }
}

static void try_captures(int nodes) {
  void *graph = NULL, *executable = NULL;
  world it = begin_over_on(nodes, lossy);
  (void)sums_below();
  for (int grouped = 0; grouped < 2; grouped++) {
    check(emulated_capture_begin(it.stream));
    fine(grouped ? ncclGroupStart() : ncclSuccess);
    fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream));
    fine(grouped ? ncclGroupEnd() : ncclSuccess);
    check(emulated_capture_end(it.stream, &graph));
    check(emulated_graph_instantiate(graph, &executable));
    replay_twice(&it, executable);
    check(emulated_executable_destroy(executable));
    check(emulated_graph_destroy(graph));
  }
  require(sums_below() == 0, "NCCL has made one");
  end(&it);
}

static void sums_that_are_captured_are_replayed(void) {
  try_captures(mpi_size);
}

static void so_are_those_whose_payloads_stay_on_devices_of_a_node(void) {
  try_captures(2);
}

/* -------------------------------------------------------------------- groups */

static void groups_hold_calls_of_both(void) {
  enum { FEW = 100 };
  world it = begin_over(lossy);
  int *small_from = it.from + SUM_COUNT, *small_to = it.to + SUM_COUNT;
  for (int round = 0; round < 3; round++) {
    (void)sums_below();
    put_floats(it.from, mpi_rank, SUM_COUNT);
    put(it.to, -1, 0, SUM_COUNT);
    put(small_from, mpi_rank, 1, FEW);
    fine(ncclGroupStart());
    fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream));
    fine(ncclGroupStart());
    fine(ncclAllGather(small_from, small_to, FEW, ncclInt32, it.comm, it.stream));
    fine(ncclGroupEnd());
    holds(&it, it.to, -1, 0, SUM_COUNT);
    fine(ncclAllReduce(small_from, small_from, FEW, ncclInt32, ncclSum, it.comm, it.stream));
    fine(ncclGroupEnd());
    is_equal_everywhere(holds_sum(it.stream, it.to, 0, SUM_COUNT, mpi_size, mpi_size == 1));
    holds(&it, small_from, mpi_size * (mpi_size - 1) / 2, mpi_size, FEW);
    for (int rank = 0; rank < mpi_size; rank++) {
      holds(&it, small_to + rank * FEW, rank, 1, FEW);
    }
    require(sums_below() == 1 + (mpi_size == 1), "NCCL has made the wrong ones");
  }
  end(&it);
}

/* Whatever comes first and second in the stream: a chosen sum, and NCCL's broadcast of it. */
static void streams_are_in_order_whoever_makes_the_calls(void) {
  world it = begin_over("net=none min=1K");
  put_floats(it.from, mpi_rank, SUM_COUNT);
  for (int round = 0; round < 10; round++) {
    fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream));
    fine(ncclBroadcast(it.to, it.to, SUM_COUNT, ncclFloat32, round % mpi_size, it.comm, it.stream));
    (void)holds_sum(it.stream, it.to, 0, SUM_COUNT, mpi_size, true);
    put(it.to, 0, 0, SUM_COUNT);
  }
  end(&it);
}

static void a_group_that_is_simulated_makes_nothing(void) {
  world it = begin_over(lossy);
  ncclSimInfo_t simulation = {.size = sizeof(simulation)};
  put(it.to, 3, 0, SUM_COUNT);
  fine(ncclGroupStart());
  fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream));
  fine(ncclGroupSimulateEnd(&simulation));
  fine(ncclGroupStart());
  fine(ncclGroupEnd());
  holds(&it, it.to, 3, 0, SUM_COUNT);
  end(&it);
}

/* Of sums that the NCCL below refuses at once, because it has no room for them; the least of many
 * rounds. */
static double ns_of_sums(const world *it, ncclDataType_t type) {
  enum { ROUNDS = 200, CALLS = 500, MANY = 1 << 20 };
  double least_s = 1;
  for (int round = 0; round < ROUNDS; round++) {
    double begin_s = MPI_Wtime();
    for (int i = 0; i < CALLS; i++) {
      ncclAllReduce(it->from, it->to, MANY, type, ncclSum, it->comm, it->stream);
    }
    double took_s = (MPI_Wtime() - begin_s) / CALLS;
    least_s = took_s < least_s ? took_s : least_s;
  }
  return least_s * 1e9;
}

/* Nothing is asserted: the figures are for people. */
static void the_time_of_a_forwarded_sum_is_printed(void) {
  world it = begin_over("net=int8 min=1K match=size>=1G");
  double integers_ns = ns_of_sums(&it, ncclInt32), floats_ns = ns_of_sums(&it, ncclFloat32);
  if (mpi_rank == 0) {
    printf("# ncclAllReduce, forwarded: %.0f ns of integers, %.0f ns of floats that no rule fits\n",
           integers_ns, floats_ns);
  }
  end(&it);
}

static const mpi_property properties[] = {
    PROPERTY(chosen_sums_are_compressed_and_equal_on_all_ranks),
    PROPERTY(exact_policies_give_exact_sums_of_libcomms),
    PROPERTY(parts_are_compressed_by_their_own_length),
    PROPERTY(what_is_no_long_sum_of_floats_is_nccls),
    PROPERTY_OF(2, sums_that_are_captured_are_replayed),
    PROPERTY_OF(3, so_are_those_whose_payloads_stay_on_devices_of_a_node),
    PROPERTY(groups_hold_calls_of_both),
    PROPERTY(streams_are_in_order_whoever_makes_the_calls),
    PROPERTY(a_group_that_is_simulated_makes_nothing),
    PROPERTY(the_time_of_a_forwarded_sum_is_printed),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

RUN_PROPERTIES(over_main, properties)

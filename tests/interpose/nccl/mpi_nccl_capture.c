/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* Calls on a stream that is captured into a graph: replayed where they can be, else refused on all
 * ranks, and the communicator is as good as before. */

#include "tests/interpose/nccl/nccl_world.h"

enum { FEW = 2000 };

/* What is captured of the stream, ready to be launched. */
static void *end_capture(const world *it) {
  void *graph = NULL, *executable = NULL;
  check(emulated_capture_end(it->stream, &graph));
  check(emulated_graph_instantiate(graph, &executable));
  check(emulated_graph_destroy(graph));
  return executable;
}

static void calls_are_replayed_with_the_data_of_then(void) {
  world it = begin("net=none");
  int *gathered = it.to + LONGEST;
  check(emulated_capture_begin(it.stream));
  fine(ncclAllReduce(it.from, it.to, FEW, ncclInt32, ncclSum, it.comm, it.stream));
  fine(ncclGroupStart());
  fine(ncclAllGather(it.from, gathered, FEW, ncclInt32, it.comm, it.stream));
  fine(ncclReduceScatter(it.to, it.from, FEW / 4, ncclInt32, ncclMax, it.comm, it.stream));
  fine(ncclGroupEnd());
  void *executable = end_capture(&it);
  for (int replay = 0; replay < 3; replay++) {
    put(it.from, mpi_rank + replay, 1, FEW);
    check(emulated_graph_launch(executable, it.stream));
    int sum = mpi_size * (mpi_size - 1) / 2 + replay * mpi_size;
    holds(&it, it.to, sum, mpi_size, FEW);
    holds(&it, it.from, sum + mpi_size * (FEW / 4) * mpi_rank, mpi_size, FEW / 4);
    for (int rank = 0; rank < mpi_size; rank++) {
      holds(&it, gathered + rank * FEW, rank + replay, 1, FEW);
    }
  }
  check(emulated_executable_destroy(executable));
  end(&it);
}

static void compressed_sums_are_replayed(void) {
  world it = begin("net=int8 min=1K");
  static float values[FEW];
  check(emulated_capture_begin(it.stream));
  fine(ncclAllReduce(it.from, it.to, FEW, ncclFloat32, ncclAvg, it.comm, it.stream));
  void *executable = end_capture(&it);
  for (int replay = 0; replay < 2; replay++) {
    for (int i = 0; i < FEW; i++) {
      values[i] = (float)((i * 37) % 1009 + replay) / 64;
    }
    to_device(it.from, values, sizeof(values));
    check(emulated_graph_launch(executable, it.stream));
    check(device->stream.finish(it.stream));
    from_device(values, it.to, sizeof(values));
    for (int i = 0; i < FEW; i++) {
      float error = values[i] - (float)((i * 37) % 1009 + replay) / 64;
      require(error < 0.2f && error > -0.2f, "element %d is off by %g", i, (double)error);
    }
  }
  check(emulated_executable_destroy(executable));
  end(&it);
}

static void what_cannot_be_replayed_is_refused(void) {
  world it = begin("net=none");
  ncclRedOp_t op = ncclSum;
  check(emulated_capture_begin(it.stream));
  fine(ncclRedOpCreatePreMulSum(&op, it.from, ncclFloat32, ncclScalarDevice, it.comm));
  refused(ncclAllReduce(it.from, it.to, FEW, ncclFloat32, op, it.comm, it.stream),
          ncclInvalidArgument, "captured");
  check(emulated_executable_destroy(end_capture(&it)));
  put(it.from, mpi_rank, 1, FEW);
  fine(ncclAllReduce(it.from, it.to, FEW, ncclInt32, ncclSum, it.comm, it.stream));
  holds(&it, it.to, mpi_size * (mpi_size - 1) / 2, mpi_size, FEW);
  end(&it);
}

/* Around a ring, which tells that no message of before is left, and that none was counted. */
static void messages_go_around(const world *it, int mark) {
  int right = (mpi_rank + 1) % mpi_size, left = (mpi_rank + mpi_size - 1) % mpi_size;
  put(it->from, mark + mpi_rank, 1, FEW);
  fine(ncclGroupStart());
  fine(ncclSend(it->from, FEW, ncclInt32, right, it->comm, it->stream));
  fine(ncclRecv(it->to, FEW, ncclInt32, left, it->comm, it->stream));
  fine(ncclGroupEnd());
  holds(it, it->to, mark + left, 1, FEW);
}

/* In groups, and without; calls that are not captured come between. */
static void messages_are_replayed_with_the_data_of_then(void) {
  world it = begin("net=none");
  int right = (mpi_rank + 1) % mpi_size, left = (mpi_rank + mpi_size - 1) % mpi_size;
  int *again = it.to + LONGEST;
  messages_go_around(&it, 100);
  check(emulated_capture_begin(it.stream));
  fine(ncclGroupStart());
  fine(ncclRecv(it.to, FEW, ncclInt32, left, it.comm, it.stream));
  fine(ncclSend(it.from, FEW, ncclInt32, right, it.comm, it.stream));
  fine(ncclGroupEnd());
  fine(ncclSend(it.to, FEW, ncclInt32, right, it.comm, it.stream));
  fine(ncclRecv(again, FEW, ncclInt32, left, it.comm, it.stream));
  void *executable = end_capture(&it);
  for (int replay = 0; replay < 3; replay++) {
    messages_go_around(&it, 200 + replay);
    put(it.from, 10 * replay + mpi_rank, 1, FEW);
    check(emulated_graph_launch(executable, it.stream));
    holds(&it, it.to, 10 * replay + left, 1, FEW);
    holds(&it, again, 10 * replay + (left + mpi_size - 1) % mpi_size, 1, FEW);
  }
  check(emulated_executable_destroy(executable));
  messages_go_around(&it, 300);
  end(&it);
}

static void gathers_and_scatters_are_replayed(void) {
  enum { PART = FEW / 4 };
  world it = begin("net=none");
  int *gathered = it.to, *scattered = it.to + LONGEST;
  check(emulated_capture_begin(it.stream));
  fine(ncclGather(it.from, gathered, PART, ncclInt32, 0, it.comm, it.stream));
  fine(ncclScatter(gathered, scattered, PART, ncclInt32, 0, it.comm, it.stream));
  void *executable = end_capture(&it);
  for (int replay = 0; replay < 3; replay++) {
    put(it.from, replay + mpi_rank, 1, PART);
    check(emulated_graph_launch(executable, it.stream));
    holds(&it, scattered, replay + mpi_rank, 1, PART);
    for (int rank = 0; rank < mpi_size && mpi_rank == 0; rank++) {
      holds(&it, gathered + rank * PART, replay + rank, 1, PART);
    }
  }
  check(emulated_executable_destroy(executable));
  end(&it);
}

/* Rank 0 sends to the last rank; others have no message. The sum is captured on all ranks. */
static void groups_have_messages_and_sums(void) {
  world it = begin("net=none");
  int last = mpi_size - 1;
  check(emulated_capture_begin(it.stream));
  fine(ncclGroupStart());
  if (mpi_rank == 0) {
    fine(ncclSend(it.from, FEW, ncclInt32, last, it.comm, it.stream));
  }
  fine(ncclAllReduce(it.from, it.to, FEW, ncclInt32, ncclSum, it.comm, it.stream));
  if (mpi_rank == last) {
    fine(ncclRecv(it.to + LONGEST, FEW, ncclInt32, 0, it.comm, it.stream));
  }
  fine(ncclGroupEnd());
  void *executable = end_capture(&it);
  for (int replay = 0; replay < 3; replay++) {
    put(it.from, replay + mpi_rank, 1, FEW);
    check(emulated_graph_launch(executable, it.stream));
    holds(&it, it.to, mpi_size * (mpi_size - 1) / 2 + replay * mpi_size, mpi_size, FEW);
    if (mpi_rank == last) {
      holds(&it, it.to + LONGEST, replay, 1, FEW);
    }
  }
  check(emulated_executable_destroy(executable));
  messages_go_around(&it, 300);
  end(&it);
}

static const mpi_property properties[] = {
    PROPERTY(calls_are_replayed_with_the_data_of_then),
    PROPERTY(compressed_sums_are_replayed),
    PROPERTY(what_cannot_be_replayed_is_refused),
    PROPERTY(messages_are_replayed_with_the_data_of_then),
    PROPERTY(gathers_and_scatters_are_replayed),
    PROPERTY(groups_have_messages_and_sums),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

RUN_PROPERTIES(alone_main, properties)

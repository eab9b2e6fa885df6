/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Calls that a program captures into graphs, and replays. */

#include "libcomm/engine/recording.h"
#include "tests/engine/tape_graphs.h"

static const char *const policies[] = {
    "net=none",
    "net=int8 min=1",
    "net=bf16+zstd min=1 check=xxhash",
    "net=none algo=ring",
    "net=topk:0.03 min=1",
    "net=topk:0.1,values=int8+zstd min=1 check=xxhash algo=direct",
};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]), REPLAYS = 4 };

static void require_wanted(const held *it, const char *policy, int stride) {
  for (int i = 0; i < CALLS; i += stride) {
    require(memcmp(it->results[i], wanted[i], count_of(i) * sizeof(float)) == 0,
            "'%s', call %d: other bits than on the host", policy, i);
  }
}

/* Some of a shape, also of one that calls have used before; calls come between replays. */
static void replays_give_what_calls_give(void) {
  for (int p = 0; p < POLICIES; p++) {
    make_wanted(policies[p]);
    held it;
    begin_held(&it);
    lcomm_comm *comm = make_driven(policies[p], mpi_size, LCOMM_PROGRESS_CALLS);
    sum_before(comm, &it, 3);
    restore(&it);
    launchable all = capture_sums(comm, &it, 0, CALLS, 1);
    for (int replay = 0; replay < REPLAYS; replay++) {
      restore(&it);
      launch(&all, it.stream);
      check(device->stream.finish(it.stream));
      require_wanted(&it, policies[p], 1);
      restore(&it);
      sum_in_stream(comm, &it, replay % CALLS);
      check(device->stream.finish(it.stream));
      require(memcmp(it.results[replay % CALLS], wanted[replay % CALLS],
                     count_of(replay % CALLS) * sizeof(float)) == 0,
              "'%s': a call after replay %d", policies[p], replay);
    }
    free_graph(&all);
    require_fine(NULL, lcomm_destroy(comm));
    free_held(&it);
  }
}

/* Each replay sums the result of the one before, as calls would. */
static void replays_follow_each_other_on_the_device(void) {
  held it;
  static float expected[LARGEST];
  begin_held(&it);
  lcomm_comm *comm = make_driven("net=int8 min=1", mpi_size, LCOMM_PROGRESS_CALLS);
  fill_gradient(expected, count_of(0), (uint64_t)mpi_rank);
  memcpy(it.results[0], expected, sizeof(expected));
  for (int replay = 0; replay < REPLAYS; replay++) {
    require_fine(comm,
                 lcomm_allreduce(comm, expected, expected, count_of(0), LCOMM_FLOAT32, LCOMM_SUM));
  }
  launchable one = capture_sums(comm, &it, 0, 1, 1);
  for (int replay = 0; replay < REPLAYS; replay++) {
    launch(&one, it.stream);
  }
  free_graph(&one); /* what was launched goes on */
  check(device->stream.finish(it.stream));
  require(memcmp(it.results[0], expected, count_of(0) * sizeof(float)) == 0,
          "replays in flight give other bits than calls");
  require_fine(NULL, lcomm_destroy(comm));
  free_held(&it);
}

/* In two streams, which ranks launch in another order, both captured at one time. */
static void two_graphs_go_side_by_side(void) {
  held here, there;
  make_wanted("net=bf16 min=1");
  begin_held(&here);
  begin_held(&there);
  lcomm_comm *comm = make_driven("net=bf16 min=1", mpi_size, LCOMM_PROGRESS_THREAD);
  restore(&here);
  restore(&there);
  launchable one, other;
  check(emulated_capture_begin(here.stream));
  check(emulated_capture_begin(there.stream));
  for (int i = 0; i < CALLS; i++) {
    sum_in_stream(comm, i % 2 ? &here : &there, i);
    sum_in_stream(comm, i % 2 ? &there : &here, i);
  }
  end_capture(&one, here.stream);
  end_capture(&other, there.stream);
  for (int replay = 0; replay < REPLAYS; replay++) {
    restore(&here);
    restore(&there);
    bool turned = !need_one_order() && (mpi_rank + replay) % 2;
    launch(turned ? &one : &other, turned ? here.stream : there.stream);
    launch(turned ? &other : &one, turned ? there.stream : here.stream);
    check(device->stream.finish(here.stream));
    check(device->stream.finish(there.stream));
    require_wanted(&here, "one stream", 1);
    require_wanted(&there, "the other stream", 1);
  }
  restore(&here);
  launch(&one, here.stream); /* one after the other, in one stream */
  launch(&other, here.stream);
  check(device->stream.finish(here.stream));
  require_wanted(&here, "one and the other", 1);
  free_graph(&one);
  free_graph(&other);
  require_fine(NULL, lcomm_destroy(comm));
  free_held(&here);
  free_held(&there);
}

/* Nobody looks while the device comes to some. Not where a launch may wait for memory that another
 * thread frees, and that for the replay before. */
static void launch_unseen(lcomm_comm *comm, launchable *graph, void *stream) {
  bool unseen = !memory_comes_and_goes();
  if (unseen) {
    hold_progress(comm);
  }
  for (int replay = 0; replay < REPLAYS; replay++) {
    launch(graph, stream);
  }
  if (unseen) {
    sleep_ms(30);
    release_progress(comm);
  }
}

/* The root of a broadcast is replays ahead, and all come when they come. */
static void ranks_replay_when_they_come_to_it(void) {
  held it;
  begin_held(&it);
  uint64_t count = count_of(0);
  lcomm_comm *comm = make_driven("net=none", mpi_size, LCOMM_PROGRESS_CALLS);
  launchable spread;
  check(emulated_capture_begin(it.stream));
  check(device->copy(it.buffers[0], it.results[0], count * sizeof(float), it.stream));
  require_fine(comm,
               lcomm_broadcast_on_stream(comm, it.buffers[0], count, LCOMM_FLOAT32, 0, it.stream));
  check(device->copy(it.results[1], it.buffers[0], count * sizeof(float), it.stream));
  end_capture(&spread, it.stream);
  for (int replay = 0; replay < REPLAYS; replay++) {
    fill_gradient(it.results[0], count, (uint64_t)(100 * replay + mpi_rank));
    fill_gradient(it.results[2], count, (uint64_t)(100 * replay));
    sleep_ms((mpi_rank + replay) % 2 ? 30 : 0);
    launch(&spread, it.stream);
    check(device->stream.finish(it.stream));
    require(memcmp(it.results[1], it.results[2], count * sizeof(float)) == 0,
            "replay %d of a broadcast brings something else", replay);
  }
  require_fine(comm, lcomm_barrier(comm));
  sleep_ms(30); /* all is acknowledged */
  launch_unseen(comm, &spread, it.stream);
  for (int replay = 0; replay < 3 * REPLAYS; replay++) { /* the root waits for nobody here */
    sleep_ms(mpi_rank > 0 ? 5 : 0);
    launch(&spread, it.stream);
  }
  check(device->stream.finish(it.stream));
  free_graph(&spread);
  require_fine(NULL, lcomm_destroy(comm));
  free_held(&it);
}

/* A seed that a graph held would round in one way for ever. */
static void each_replay_rounds_by_chance_anew(void) {
  held it;
  static float first[LARGEST], lowest[LARGEST];
  begin_held(&it);
  lcomm_comm *comm = make_driven("net=fp8e4m3:stochastic min=1", mpi_size, LCOMM_PROGRESS_CALLS);
  launchable one = capture_sums(comm, &it, 0, 1, 1);
  int same = 0;
  for (int replay = 0; replay < REPLAYS; replay++) {
    fill_gradient(it.results[0], count_of(0), (uint64_t)mpi_rank);
    launch(&one, it.stream);
    check(device->stream.finish(it.stream));
    size_t size = count_of(0) * sizeof(float);
    memcpy(lowest, it.results[0], size);
    MPI_Bcast(lowest, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
    require(memcmp(lowest, it.results[0], size) == 0, "ranks have different sums");
    same += replay > 0 && memcmp(first, it.results[0], size) == 0;
    memcpy(first, it.results[0], size);
  }
  require(mpi_size == 1 || same == 0, "%d replays round as the one before", same);
  free_graph(&one);
  require_fine(NULL, lcomm_destroy(comm));
  free_held(&it);
}

/* What they need is given back once their graph is gone, by a call. */
static void recordings_end_with_their_graphs(void) {
  held it;
  begin_held(&it);
  make_wanted("net=int8 min=1");
  lcomm_comm *comm = make_driven("net=int8 min=1", mpi_size, LCOMM_PROGRESS_CALLS);
  restore(&it);
  launchable some = capture_sums(comm, &it, 0, 4, 1);
  require(comm->recordings.first, "nothing is recorded");
  launch(&some, it.stream);
  check(device->stream.finish(it.stream));
  free_graph(&some);
  await_no_recordings(comm, &it);
  require_fine(NULL, lcomm_destroy(comm));
  free_held(&it);
}

/* Results mean nothing then, and nothing waits. Memory stays until the graph is gone. */
static void replays_pass_when_their_communicator_is_gone(void) {
  held it;
  begin_held(&it);
  make_wanted("net=topk:0.1 min=1");
  lcomm_comm *comm = make_driven("net=topk:0.1 min=1", mpi_size, LCOMM_PROGRESS_CALLS);
  restore(&it);
  launchable some = capture_sums(comm, &it, 0, CALLS, 1);
  launch(&some, it.stream);
  check(device->stream.finish(it.stream));
  require_wanted(&it, "before the end", 1);
  require_fine(NULL, lcomm_destroy(comm));
  for (int replay = 0; replay < REPLAYS; replay++) {
    launch(&some, it.stream);
  }
  check(device->stream.finish(it.stream));
  free_graph(&some);
  comm = make_driven("net=none", mpi_size, LCOMM_PROGRESS_CALLS);
  sum_in_stream(comm, &it, 0);
  check(device->stream.finish(it.stream));
  require_fine(NULL, lcomm_destroy(comm));
  free_held(&it);
}

/* Each collective that has a stream, in one graph. */
static void all_collectives_can_be_captured(void) {
  enum { PART = 500 };
  held it;
  size_t all = (size_t)PART * (size_t)mpi_size, bytes = all * sizeof(float);
  begin_held(&it);
  float *gathered = on_device(bytes), *moved = on_device(bytes), *part = on_device(bytes);
  float *values = on_device(bytes), *source = calloc(all, sizeof(float));
  float *got = calloc(3 * all, sizeof(float)), *expected = calloc(3 * all, sizeof(float));
  lcomm_comm *comm = make_driven("net=none", mpi_size, LCOMM_PROGRESS_CALLS);
  fill_gradient(source, all, (uint64_t)mpi_rank);
  to_device(values, source, bytes);
  launchable moves;
  check(emulated_capture_begin(it.stream));
  require_fine(comm,
               lcomm_allgather_on_stream(comm, values, gathered, PART, LCOMM_FLOAT32, it.stream));
  require_fine(comm, lcomm_alltoall_on_stream(comm, values, moved, PART, LCOMM_FLOAT32, it.stream));
  require_fine(comm, lcomm_reduce_scatter_on_stream(comm, values, part, PART, LCOMM_FLOAT32,
                                                    LCOMM_AVG, it.stream));
  end_capture(&moves, it.stream);
  for (int replay = 0; replay < 3; replay++) {
    fill_gradient(source, all, (uint64_t)(mpi_rank + 50 * replay));
    to_device(values, source, bytes);
    require_fine(comm, lcomm_allgather(comm, source, expected, PART, LCOMM_FLOAT32));
    require_fine(comm, lcomm_alltoall(comm, source, expected + all, PART, LCOMM_FLOAT32));
    require_fine(comm, lcomm_reduce_scatter(comm, source, expected + 2 * all, PART, LCOMM_FLOAT32,
                                            LCOMM_AVG));
    launch(&moves, it.stream);
    check(device->stream.finish(it.stream));
    from_device(got, gathered, bytes);
    from_device(got + all, moved, bytes);
    from_device(got + 2 * all, part, PART * sizeof(float));
    require(memcmp(got, expected, 2 * bytes + PART * sizeof(float)) == 0, "replay %d", replay);
  }
  free_graph(&moves);
  require_fine(NULL, lcomm_destroy(comm));
  float *mine[] = {gathered, moved, part, values};
  for (int i = 0; i < 4; i++) {
    check(device->memory.free(mine[i]));
  }
  free(source);
  free(got);
  free(expected);
  free_held(&it);
}

static const mpi_property properties[] = {
    PROPERTY(replays_give_what_calls_give),
    PROPERTY(replays_follow_each_other_on_the_device),
    PROPERTY(two_graphs_go_side_by_side),
    PROPERTY(ranks_replay_when_they_come_to_it),
    PROPERTY(each_replay_rounds_by_chance_anew),
    PROPERTY(recordings_end_with_their_graphs),
    PROPERTY(replays_pass_when_their_communicator_is_gone),
    PROPERTY(all_collectives_can_be_captured),
    PROPERTY(nothing_is_left_on_the_device),
};
RUN_PROPERTIES(pausing_device_main, properties)

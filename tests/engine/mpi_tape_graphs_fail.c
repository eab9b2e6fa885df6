/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* Calls that cannot be captured, and replays that fail. Runs that are given up keep their memory,
 * so nothing is counted at the end. */

#include "tests/engine/tape_graphs.h"

static lcomm_status try_sum(lcomm_comm *comm, const held *it, int call) {
  return lcomm_allreduce_on_stream(comm, it->buffers[call], it->buffers[call], count_of(call),
                                   LCOMM_FLOAT32, LCOMM_SUM, it->stream);
}

/* An empty capture is a graph, too. */
static void end_without(void *stream) {
  launchable it;
  end_capture(&it, stream);
  free_graph(&it);
}

static void captured_and_called_again(lcomm_comm *comm, const held *it) {
  launchable made = capture_sums(comm, it, 0, 1, 1);
  for (int i = 0; i < 2; i++) {
    memcpy(it->results[0], sent[0], sizeof(sent[0]));
    launch(&made, it->stream);
    check(device->stream.finish(it->stream));
    require(memcmp(it->results[0], wanted[0], count_of(0) * sizeof(float)) == 0, "replay %d", i);
  }
  free_graph(&made);
}

/* No thread may move one rank's messages: no rank captures, and all say which one it was. */
static void what_one_rank_cannot_capture_no_rank_does(void) {
  held it;
  make_wanted("net=none");
  begin_held(&it);
  lcomm_comm *comm = make_driven("net=none", mpi_size, LCOMM_PROGRESS_CALLS);
  bool allowed = comm->progress.allows_thread;
  comm->progress.allows_thread = allowed && mpi_rank != 1;
  check(emulated_capture_begin(it.stream));
  lcomm_status status = try_sum(comm, &it, 0);
  require_status_everywhere(comm, status, LCOMM_ERR_ARGUMENT, "rank 1");
  end_without(it.stream);
  comm->progress.allows_thread = allowed;
  captured_and_called_again(comm, &it); /* the refusal is over */
  require_fine(NULL, lcomm_destroy(comm));
  free_held(&it);
}

static void ranks_that_capture_different_calls_are_told(void) {
  held it;
  make_wanted("net=none");
  begin_held(&it);
  lcomm_comm *comm = make_driven("net=none", mpi_size, LCOMM_PROGRESS_CALLS);
  check(emulated_capture_begin(it.stream));
  lcomm_status status = try_sum(comm, &it, mpi_rank == 1 ? 2 : 0);
  require_status_everywhere(comm, status, LCOMM_ERR_MISMATCH, "capture different calls");
  end_without(it.stream);
  captured_and_called_again(comm, &it);
  require_fine(NULL, lcomm_destroy(comm));
  free_held(&it);
}

/* One captures what the others call. */
static void a_call_is_no_capture(void) {
  held it;
  make_wanted("net=none");
  begin_held(&it);
  lcomm_comm *comm = make_driven("net=none", mpi_size, LCOMM_PROGRESS_CALLS);
  if (mpi_rank == 0) {
    check(emulated_capture_begin(it.stream));
  }
  lcomm_status status = try_sum(comm, &it, 0);
  if (mpi_rank == 0) {
    end_without(it.stream);
  } else {
    check(device->stream.finish(it.stream));
    status = lcomm_barrier(comm);
  }
  require_status_everywhere(comm, status, LCOMM_ERR_MISMATCH, "captured into a graph");
  (void)lcomm_destroy(comm);
  free_held(&it);
}

/* Replays that are in flight, that are waiting, and that come later. */
static void replays_pass_when_a_rank_gives_up(void) {
  held it;
  make_wanted("net=topk:0.05 min=1");
  begin_held(&it);
  lcomm_comm *comm = make_driven("net=topk:0.05 min=1", mpi_size, LCOMM_PROGRESS_CALLS);
  launchable all = capture_sums(comm, &it, 0, CALLS, 1);
  give_up_in_replays(comm, &all, it.stream);
  check(emulated_capture_begin(it.stream));
  lcomm_status status = try_sum(comm, &it, 0);
  require_status_everywhere(comm, status, LCOMM_ERR_ABORTED, "electricity");
  end_without(it.stream);
  (void)lcomm_destroy(comm);
  launch(&all, it.stream);
  check(device->stream.finish(it.stream));
  free_graph(&all);
  free_held(&it);
}

/* A rank that never replays is a silent peer. */
static void a_rank_that_does_not_replay_is_named(void) {
  held it;
  begin_held(&it);
  make_wanted("net=none");
  lcomm_comm *comm = make_impatient(mpi_size, 3);
  launchable some = capture_sums(comm, &it, 0, 2, 1);
  require_rank_0_is_named(comm, &some, &it);
}

static void the_device_comes_to_an_end(void) {
  (void)emulated_end();
}

static const mpi_property properties[] = {
    PROPERTY(what_one_rank_cannot_capture_no_rank_does),
    PROPERTY(ranks_that_capture_different_calls_are_told),
    PROPERTY(a_call_is_no_capture),
    PROPERTY(replays_pass_when_a_rank_gives_up),
    PROPERTY(a_rank_that_does_not_replay_is_named),
    PROPERTY(the_device_comes_to_an_end),
};
RUN_PROPERTIES(pausing_device_main, properties)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* Messages between two ranks that cannot be captured, and replays of some that fail. Memory of
 * graphs whose communicator failed is not counted. */

#include "libcomm/engine/pair_recording.h"
#include "tests/engine/pair_graphs.h"

static void capture_ring(const ring *it, uint64_t sent, uint64_t received, launchable *made) {
  check(emulated_capture_begin(it->stream));
  ring_send(it, sent);
  ring_receive(it, received);
  end_capture(made, it->stream);
}

/* An empty capture is a graph, too. */
static void end_without(void *stream) {
  launchable it;
  end_capture(&it, stream);
  free_graph(&it);
}

static void require_refused(lcomm_comm *comm, lcomm_status status, lcomm_status wanted,
                            const char *word) {
  require(status == wanted, "%s, wanted %s", lcomm_status_string(status),
          lcomm_status_string(wanted));
  require(strstr(lcomm_last_error(comm), word) != NULL, "%s", lcomm_last_error(comm));
}

/* The communicator is as good as before. */
static void require_ring_works(ring *it) {
  launchable one;
  capture_ring(it, 3000, 3000, &one);
  for (int replay = 0; replay < 2; replay++) {
    ring_fill(it, replay);
    launch_to_the_end(&one, it->stream);
    ring_require(it, replay, 3000);
  }
  free_graph(&one);
}

static void what_cannot_be_captured_is_refused(void) {
  ring it = ring_begin("", 1);
  bool allowed = it.comm->progress.allows_thread;
  it.comm->progress.allows_thread = false;
  check(emulated_capture_begin(it.stream));
  require_refused(it.comm,
                  lcomm_send_on_stream(it.comm, it.from, 9, LCOMM_FLOAT32, it.right, it.stream),
                  LCOMM_ERR_UNSUPPORTED, "no thread may move messages");
  it.comm->progress.allows_thread = allowed;
  require_refused(it.comm,
                  lcomm_send_on_stream(it.comm, it.got, 9, LCOMM_FLOAT32, it.right, it.stream),
                  LCOMM_ERR_ARGUMENT, "host memory");
  end_without(it.stream);
  require_ring_works(&it);
  it.comm->pairs->out[it.right].captured = LCOMM_PAIR_CAPTURED_MAX;
  check(emulated_capture_begin(it.stream));
  require_refused(it.comm,
                  lcomm_send_on_stream(it.comm, it.from, 9, LCOMM_FLOAT32, it.right, it.stream),
                  LCOMM_ERR_ARGUMENT, "make another one");
  end_without(it.stream);
  ring_end(&it);
}

/* A receive of a group begins at its end; by then its stream may be in no capture. */
static void groups_end_before_the_capture(void) {
  ring it = ring_begin("", 1);
  check(emulated_capture_begin(it.stream));
  require_fine(it.comm, lcomm_group_begin(it.comm));
  ring_receive(&it, 3000);
  end_without(it.stream);
  require_refused(it.comm, lcomm_group_end(it.comm), LCOMM_ERR_ARGUMENT, "end the group before");
  require_ring_works(&it);
  ring_end(&it);
}

/* Ranks whose replays bring other counts are told, all of them, who does. */
static void other_counts_are_told(void) {
  ring it = ring_begin("", 1);
  launchable one;
  capture_ring(&it, mpi_rank == 0 ? 3001 : 3000, 3000, &one);
  launch_to_the_end(&one, it.stream);
  lcomm_status status = lcomm_barrier(it.comm);
  require_status_everywhere(it.comm, status, LCOMM_ERR_MISMATCH, "a captured message, replay #0");
  require(strstr(lcomm_last_error(it.comm), "rank 0"), "%s", lcomm_last_error(it.comm));
  (void)lcomm_destroy(it.comm);
  launch_to_the_end(&one, it.stream);
  free_graph(&one);
  ring_free(&it);
}

/* Replays that are in flight, that are waiting, and that come later. */
static void replays_pass_when_a_rank_gives_up(void) {
  ring it = ring_begin("", mpi_size);
  launchable one;
  capture_ring(&it, LONGEST, LONGEST, &one);
  launch_to_the_end(&one, it.stream);
  for (int i = 0; i < 3 && mpi_rank > 0; i++) {
    launch(&one, it.stream);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (mpi_rank == 0) {
    (void)lcomm_abort(it.comm, "no more electricity");
  }
  check(device->stream.finish(it.stream));
  MPI_Barrier(MPI_COMM_WORLD);
  launch_to_the_end(&one, it.stream);
  require_status_everywhere(it.comm, lcomm_barrier(it.comm), LCOMM_ERR_ABORTED, "electricity");
  check(emulated_capture_begin(it.stream));
  lcomm_status status =
      lcomm_send_on_stream(it.comm, it.from, 9, LCOMM_FLOAT32, it.right, it.stream);
  require_status_everywhere(it.comm, status, LCOMM_ERR_ABORTED, "electricity");
  end_without(it.stream);
  (void)lcomm_destroy(it.comm);
  launch_to_the_end(&one, it.stream);
  free_graph(&one);
  ring_free(&it);
}

/* A rank that never replays is a silent peer. */
static void a_rank_that_does_not_replay_is_named(void) {
  ring it = ring_begin("", 1);
  require_fine(NULL, lcomm_destroy(it.comm));
  it.comm = make_impatient(mpi_size, 3);
  launchable one;
  capture_ring(&it, LONGEST, LONGEST, &one);
  if (mpi_rank > 0) {
    launch(&one, it.stream);
  }
  check(device->stream.finish(it.stream));
  MPI_Barrier(MPI_COMM_WORLD);
  lcomm_status status = lcomm_barrier(it.comm);
  require(status == LCOMM_ERR_TIMEOUT, "replays were over without rank 0");
  require(strstr(lcomm_last_error(it.comm), "rank 0") &&
              strstr(lcomm_last_error(it.comm), "captured into a graph"),
          "%s", lcomm_last_error(it.comm));
  (void)lcomm_destroy(it.comm);
  free_graph(&one);
  ring_free(&it);
}

static void the_device_comes_to_an_end(void) {
  (void)emulated_end();
}

static const mpi_property properties[] = {
    PROPERTY(what_cannot_be_captured_is_refused),
    PROPERTY(groups_end_before_the_capture),
    PROPERTY(other_counts_are_told),
    PROPERTY(replays_pass_when_a_rank_gives_up),
    PROPERTY(a_rank_that_does_not_replay_is_named),
    PROPERTY(the_device_comes_to_an_end),
};
RUN_PROPERTIES(pausing_device_main, properties)

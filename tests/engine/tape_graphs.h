/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_ENGINE_TAPE_GRAPHS_H
#define LCOMM_TESTS_ENGINE_TAPE_GRAPHS_H

/* Graphs of calls, on emulated devices. Included by one program each. */

#include <time.h>

#include "libcomm/engine/progress_thread.h"
#include "libcomm/engine/recording.h"
#include "tests/engine/graph_launch.h"
#include "tests/engine/tape_calls.h"

static inline launchable capture_sums(lcomm_comm *comm, const held *it, int first, int end,
                                      int stride) {
  launchable made;
  check(emulated_capture_begin(it->stream));
  for (int i = first; i < end; i += stride) {
    sum_in_stream(comm, it, i);
  }
  end_capture(&made, it->stream);
  return made;
}

static inline void sleep_ms(int ms) {
  nanosleep(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000}, NULL);
}

/* Between the two the progress thread, where there is one, moves no message. The caller has no
 * turn, so it may call its device. */
static inline void hold_progress(lcomm_comm *comm) {
  if (comm->progress.thread) {
    pthread_mutex_lock(lcomm_progress_thread_guard(comm->progress.thread));
  }
}

static inline void release_progress(lcomm_comm *comm) {
  if (comm->progress.thread) {
    pthread_mutex_unlock(lcomm_progress_thread_guard(comm->progress.thread));
  }
}

/* Calls until no graph is recorded any more. */
static inline void await_no_recordings(lcomm_comm *comm, const held *it) {
  for (int left = 1; left > 0;) { /* a thread may still be about to see the end of the replay */
    sum_in_stream(comm, it, 5);
    check(device->stream.finish(it->stream));
    int mine = comm->recordings.first != NULL;
    MPI_Allreduce(&mine, &left, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  }
}

/* Rank 0 gives up and comes to none of three launches of the others, nor to one after it. */
static inline void give_up_in_replays(lcomm_comm *comm, const launchable *all, void *stream) {
  launch_to_the_end(all, stream);
  for (int i = 0; i < 3 && mpi_rank > 0; i++) {
    launch(all, stream);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (mpi_rank == 0) {
    (void)lcomm_abort(comm, "no more electricity");
  }
  check(device->stream.finish(stream));
  MPI_Barrier(MPI_COMM_WORLD);
  launch_to_the_end(all, stream);
  require_status_everywhere(comm, lcomm_barrier(comm), LCOMM_ERR_ABORTED, "electricity");
}

/* Rank 0 never replays, and is a silent peer; then all is freed. */
static inline void require_rank_0_is_named(lcomm_comm *comm, const launchable *some, held *it) {
  if (mpi_rank > 0) {
    launch(some, it->stream);
  }
  check(device->stream.finish(it->stream));
  MPI_Barrier(MPI_COMM_WORLD);
  lcomm_status status = lcomm_barrier(comm);
  require(status != LCOMM_OK, "replays were over without rank 0");
  require(strstr(lcomm_last_error(comm), "rank 0"), "%s", lcomm_last_error(comm));
  (void)lcomm_destroy(comm);
  free_graph(some);
  free_held(it);
}

#endif

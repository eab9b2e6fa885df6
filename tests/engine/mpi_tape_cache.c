/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 */

/* Runs on a device that the cache has no room for: a thread that moves messages gives them up, and
 * a call of the program frees what they had. */

#include "libcomm/engine/entry.h"
#include "libcomm/engine/exec.h"
#include "libcomm/engine/operation.h"
#include "tests/engine/tape_calls.h"

enum { ROUNDS = 10 };

static int count_runs(lcomm_comm *comm) {
  int count = 0;
  require_fine(comm, lcomm_enter(comm));
  for (const lcomm_run *run = comm->runs.cache.newest; run; run = run->cached.older) {
    count += run->device != NULL;
  }
  for (const lcomm_run *run = comm->runs.spent; run; run = run->cached.next) {
    count++;
  }
  lcomm_exit(comm);
  return count;
}

static uint64_t misses_of(lcomm_comm *comm) {
  require_fine(comm, lcomm_enter(comm));
  uint64_t misses = comm->runs.cache.misses;
  lcomm_exit(comm);
  return misses;
}

/* Until no run is in use. No thread moves what one rank does alone. */
static void settle(lcomm_comm *comm) {
  bool idle = false, moved = false;
  while (!idle) {
    require_fine(comm, lcomm_enter(comm));
    require_fine(comm, lcomm_operations_move(comm, &moved));
    idle = comm->runs.played == 0;
    lcomm_exit(comm);
    sched_yield();
  }
}

static void require_wanted(const held *it, int call) {
  require(memcmp(it->results[call], wanted[call], count_of(call) * sizeof(float)) == 0,
          "call %d: other bits than on the host", call);
}

/* One whose cache has room for one run. */
static lcomm_comm *begin_small(held *it) {
  setenv("LCOMM_RUN_CACHE", "1", 1);
  make_wanted("net=int8 min=1");
  begin_held(it);
  return make_driven("net=int8 min=1", mpi_size, LCOMM_PROGRESS_CALLS);
}

static void end_small(lcomm_comm *comm, held *it) {
  require_fine(NULL, lcomm_destroy(comm));
  free_held(it);
  unsetenv("LCOMM_RUN_CACHE");
}

/* One after the other: the one before is given up when its call is over, and freed by the next. */
static void one_run_is_kept_where_there_is_room_for_one(void) {
  held it;
  lcomm_comm *comm = begin_small(&it);
  for (int round = 0; round < ROUNDS; round++) {
    restore(&it);
    for (int i = 0; i < CALLS; i += 2) {
      sum_in_stream(comm, &it, i);
      check(device->stream.finish(it.stream));
      require_wanted(&it, i);
      settle(comm);
      int runs = count_runs(comm);
      require(runs <= 2, "%d runs are there after a call", runs);
    }
  }
  require(misses_of(comm) == (uint64_t)ROUNDS * (CALLS / 2), "a run of another shape was kept");
  end_small(comm, &it);
}

/* All at once, several of a shape, none of which is freed while it is played. */
static void runs_in_flight_are_given_up_when_they_are_over(void) {
  held it;
  lcomm_comm *comm = begin_small(&it);
  for (int round = 0; round < ROUNDS; round++) {
    restore(&it);
    for (int i = 0; i < CALLS; i++) {
      sum_in_stream(comm, &it, i);
    }
    check(device->stream.finish(it.stream));
    for (int i = 0; i < CALLS; i++) {
      require_wanted(&it, i);
    }
  }
  settle(comm);
  sum_in_stream(comm, &it, 0); /* frees the others */
  check(device->stream.finish(it.stream));
  settle(comm);
  int runs = count_runs(comm);
  require(runs <= 2, "%d runs are there", runs);
  end_small(comm, &it);
}

static const mpi_property properties[] = {
    PROPERTY(one_run_is_kept_where_there_is_room_for_one),
    PROPERTY(runs_in_flight_are_given_up_when_they_are_over),
    PROPERTY(nothing_is_left_on_the_device),
};
RUN_PROPERTIES(pausing_device_main, properties)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Calls whose work on a device is put there by the call itself. */

#include "libcomm/engine/lanes.h"
#include "tests/engine/tape_calls.h"

static const char *const policies[] = {
    "net=none",
    "net=int8 min=1",
    "net=bf16+zstd min=1 check=xxhash",
    "net=none algo=ring",
    "net=fp8e4m3:stochastic min=1",
};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

static void require_wanted(const held *it, const char *policy, int stride) {
  for (int i = 0; i < CALLS; i += stride) {
    require(memcmp(it->results[i], wanted[i], count_of(i) * sizeof(float)) == 0,
            "'%s', call %d: other bits than on the host", policy, i);
  }
}

/* However messages are moved else. Before, two calls of each shape are in flight, and the program
 * has memory and frees it between them. */
static void calls_return_while_their_stream_is_held(void) {
  static const lcomm_progress_mode modes[] = {LCOMM_PROGRESS_CALLS, LCOMM_PROGRESS_THREAD,
                                              LCOMM_PROGRESS_AUTO};
  for (int p = 0; p < POLICIES; p++) {
    make_wanted(policies[p]);
    held it;
    begin_held(&it);
    lcomm_comm *comm = make_driven(policies[p], mpi_size, modes[p % 3]);
    for (int i = 0; i < CALLS && comm; i++) {
      sum_in_stream(comm, &it, i);
      check(device->memory.free(on_device(100)));
    }
    check(device->stream.finish(it.stream));
    require_wanted(&it, policies[p], 1);
    require_fine(comm, lcomm_barrier(comm));
    restore(&it);
    hold(&it);
    for (int i = 0; i < CALLS; i += 2) {
      sum_in_stream(comm, &it, i);
    }
    let_go(&it);
    /* Calls have numbers of their own, and only the first ones are those of the host's calls. */
    if (!strstr(policies[p], "stochastic")) {
      require_wanted(&it, policies[p], 2);
    }
    require(comm->runs.lanes, "'%s': nothing was played", policies[p]);
    require_fine(NULL, lcomm_destroy(comm));
    free_held(&it);
  }
}

/* As what waits for all streams needs it. */
static void operations_in_flight_need_no_call_of_the_program(void) {
  held it;
  make_wanted("net=int8 min=1");
  lcomm_request requests[CALLS];
  lcomm_comm *comm = make_driven("net=int8 min=1", mpi_size, LCOMM_PROGRESS_CALLS);
  begin_held(&it);
  for (int i = 0; i < CALLS; i++) {
    to_device(it.buffers[i], sent[i], sizeof(sent[i]));
    require_fine(comm, lcomm_iallreduce(comm, it.buffers[i], it.buffers[i], count_of(i),
                                        LCOMM_FLOAT32, LCOMM_SUM, &requests[i]));
  }
  for (const lcomm_lanes *lanes = comm->runs.lanes; lanes; lanes = lanes->next) {
    for (int i = 0; i < LCOMM_LANE_COUNT; i++) {
      check(device->stream.finish(lanes->stream[i]));
    }
  }
  for (int i = 0; i < CALLS; i++) {
    from_device(it.results[i], it.buffers[i], count_of(i) * sizeof(float));
    require(memcmp(it.results[i], wanted[i], count_of(i) * sizeof(float)) == 0, "call %d", i);
    require_fine(comm, lcomm_wait(comm, &requests[i]));
  }
  require_fine(NULL, lcomm_destroy(comm));
  free_held(&it);
}

/* The second call of a residual begins with what the first one kept. */
static void calls_with_a_residual_are_played(void) {
  static float twice[2][LARGEST], there[LARGEST];
  for (int on_it = 0; on_it < 2; on_it++) {
    lcomm_comm *comm = make_driven("net=int4+ef min=1", mpi_size, LCOMM_PROGRESS_CALLS);
    lcomm_residual *residual = NULL;
    float *buffer = on_it ? on_device(sizeof(there)) : there;
    require_fine(comm, lcomm_residual_create(comm, LARGEST, LCOMM_AVG, &residual));
    for (int call = 0; call < 2; call++) {
      fill_gradient(there, LARGEST, (uint64_t)(7 + call + 10 * mpi_rank));
      if (on_it) {
        to_device(buffer, there, sizeof(there));
      }
      require_fine(comm, lcomm_allreduce_ef(residual, buffer, buffer));
    }
    from_device(twice[on_it], buffer, sizeof(there));
    require(!on_it || comm->runs.lanes, "nothing was played");
    require_fine(NULL, lcomm_destroy(comm));
    if (on_it) {
      check(device->memory.free(buffer));
    }
  }
  require(memcmp(twice[0], twice[1], sizeof(there)) == 0, "other bits than on the host");
}

static void nothing_is_left_on_the_device(void) {
  require_left_on_device(0);
}

static const mpi_property properties[] = {
    PROPERTY(calls_return_while_their_stream_is_held),
    PROPERTY(operations_in_flight_need_no_call_of_the_program),
    PROPERTY(calls_with_a_residual_are_played),
    PROPERTY(nothing_is_left_on_the_device),
};
RUN_PROPERTIES(pausing_device_main, properties)

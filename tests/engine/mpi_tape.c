/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Calls whose work on a device is put there by the call itself. */

#include "libcomm/engine/entry.h"
#include "libcomm/engine/lanes.h"
#include "libcomm/tensor/residual.h"
#include "tests/engine/tape_calls.h"

static const char *const policies[] = {
    "net=none",
    "net=int8 min=1",
    "net=bf16+zstd min=1 check=xxhash",
    "net=none algo=ring",
    "net=fp8e4m3:stochastic min=1",
    "net=topk:0.03 min=1",
    "net=topk:0.1,values=int8+zstd min=1 check=xxhash algo=direct",
    "net=topk:0.05 min=1 algo=gather",
};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

static void require_wanted(const held *it, const char *policy, int stride) {
  for (int i = 0; i < CALLS; i += stride) {
    require(memcmp(it->results[i], wanted[i], count_of(i) * sizeof(float)) == 0,
            "'%s', call %d: other bits than on the host", policy, i);
  }
}

/* Runs of calls on the device, while nobody gives one back. */
static bool are_played(lcomm_comm *comm) {
  require_fine(comm, lcomm_enter(comm));
  const lcomm_run *run = comm->runs.cache.newest;
  while (run && (run->tape || !run->device)) {
    run = run->cached.older;
  }
  lcomm_exit(comm);
  return !run;
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
    require(comm->runs.lanes && are_played(comm), "'%s': not all is played", policies[p]);
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

enum { RESIDUAL_CALLS = 4 };

/* One after the other, the results and what is left of the last one. */
static void sum_with_a_residual(const char *policy, bool on_it,
                                float results[RESIDUAL_CALLS + 1][LARGEST]) {
  static float here[LARGEST];
  lcomm_comm *comm = make_driven(policy, mpi_size, LCOMM_PROGRESS_CALLS);
  lcomm_residual *residual = NULL;
  float *buffer = on_it ? on_device(sizeof(here)) : here;
  require_fine(comm, lcomm_residual_create(comm, LARGEST, LCOMM_AVG, &residual));
  for (int call = 0; call < RESIDUAL_CALLS; call++) {
    fill_gradient(here, LARGEST, (uint64_t)(7 + call + 10 * mpi_rank));
    if (on_it) {
      to_device(buffer, here, sizeof(here));
    }
    require_fine(comm, lcomm_allreduce_ef(residual, buffer, buffer));
    from_device(results[call], buffer, sizeof(here));
  }
  require_fine(comm, lcomm_residual_get(residual, results[RESIDUAL_CALLS]));
  require(!on_it || residual->ef.run->tape, "'%s': it goes step by step", policy);
  require_fine(NULL, lcomm_destroy(comm));
  if (on_it) {
    check(device->memory.free(buffer));
  }
}

/* Each call begins with what the one before kept, and with a density of its own. */
static void calls_with_a_residual_are_played(void) {
  static const char *const with_residual[] = {
      "net=int4+ef min=1",
      "net=topk:0.02+ef min=1 algo=direct",
      "net=topk:0.02+ef min=1 momentum=0.9 warmup=1 ramp=0.25@1",
      "net=topk:0.05,values=int8+ef+zstd min=1 momentum=0.5 algo=gather",
  };
  static float twice[2][RESIDUAL_CALLS + 1][LARGEST];
  for (int p = 0; p < (int)(sizeof(with_residual) / sizeof(with_residual[0])); p++) {
    for (int on_it = 0; on_it < 2; on_it++) {
      sum_with_a_residual(with_residual[p], on_it, twice[on_it]);
    }
    for (int i = 0; i <= RESIDUAL_CALLS; i++) {
      require(memcmp(twice[0][i], twice[1][i], sizeof(twice[0][i])) == 0,
              "'%s', call %d: other bits than on the host", with_residual[p], i);
    }
  }
}

static const mpi_property properties[] = {
    PROPERTY(calls_return_while_their_stream_is_held),
    PROPERTY(operations_in_flight_need_no_call_of_the_program),
    PROPERTY(calls_with_a_residual_are_played),
    PROPERTY(nothing_is_left_on_the_device),
};
RUN_PROPERTIES(pausing_device_main, properties)

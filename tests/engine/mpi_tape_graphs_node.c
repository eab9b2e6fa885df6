/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 4 */

/* Calls inside a node, captured into graphs: payloads stay on the devices of their senders, and
 * lanes wait for each other by gates. Runs that are given up keep their memory, so the properties
 * that give up come last, and nothing is counted after them. */

/* Payloads that do not travel with their headers. */
#define TAPE_CALLS_LARGEST 60000

#include "libcomm/engine/entry.h"
#include "libcomm/engine/gates.h"
#include "libcomm/engine/recording.h"
#include "libcomm/engine/tape.h"
#include "tests/engine/tape_graphs.h"

static const char *const policies[] = {"", "algo=direct", "algo=ring", "node=int8 min=1"};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]), REPLAYS = 4, STRIDE = 2 };

static bool sends_on(const char *policy) {
  return strstr(policy, "ring") != NULL; /* what it has received, from the host */
}

static void require_wanted(const held *it, const char *when) {
  for (int i = 0; i < CALLS; i += STRIDE) {
    require(memcmp(it->results[i], wanted[i], count_of(i) * sizeof(float)) == 0,
            "%s, call %d: other bits than on the host", when, i);
  }
}

static launchable capture(lcomm_comm *comm, const held *it) {
  return capture_sums(comm, it, 0, CALLS, STRIDE);
}

/* Messages of a captured call that have a gate, and all of them. */
static uint32_t count_messages(const lcomm_recording *recording) {
  const lcomm_schedule *schedule = &recording->run->plan->schedule;
  uint32_t count = 0;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    count += lcomm_step_is_message(&schedule->steps[i]);
  }
  return count;
}

static void require_gates(lcomm_comm *comm, const char *policy) {
  require_fine(comm, lcomm_enter(comm));
  for (const lcomm_recording *it = comm->recordings.first; it; it = it->next) {
    uint32_t all = count_messages(it), have = it->gates ? lcomm_gates_all(it->gates) : 0;
    require(all > 0 && (sends_on(policy) || have == all), "'%s': %u of %u messages have gates",
            policy, have, all);
  }
  lcomm_exit(comm);
}

/* The same calls, not captured, come between: their memory is opened meanwhile. */
static void replays_give_what_calls_give(void) {
  for (int p = 0; p < POLICIES; p++) {
    held it;
    make_wanted_of(policies[p], 1);
    begin_held(&it);
    lcomm_comm *comm = make_driven(policies[p], 1, LCOMM_PROGRESS_CALLS);
    launchable all = capture(comm, &it);
    require_gates(comm, policies[p]);
    for (int replay = 0; replay < REPLAYS; replay++) {
      restore(&it);
      launch(&all, it.stream);
      check(device->stream.finish(it.stream));
      require_wanted(&it, policies[p]);
      restore(&it);
      sum_in_stream(comm, &it, 0);
      check(device->stream.finish(it.stream));
      require(memcmp(it.results[0], wanted[0], count_of(0) * sizeof(float)) == 0,
              "'%s': a call after replay %d", policies[p], replay);
    }
    free_graph(&all);
    require_fine(NULL, lcomm_destroy(comm));
    free_held(&it);
  }
}

/* Each replay sums the result of the one before: one that took a gate's number of another replay
 * would sum what is not there yet. */
static void replays_in_flight_follow_each_other(void) {
  enum { IN_FLIGHT = 12 };
  static float expected[LARGEST];
  size_t size = count_of(0) * sizeof(float);
  for (int p = 0; p < POLICIES; p++) {
    held it;
    begin_held(&it);
    lcomm_comm *comm = make_driven(policies[p], 1, LCOMM_PROGRESS_CALLS);
    fill_gradient(expected, count_of(0), (uint64_t)mpi_rank);
    memcpy(it.results[0], expected, size);
    for (int replay = 0; replay < IN_FLIGHT; replay++) {
      require_fine(
          comm, lcomm_allreduce(comm, expected, expected, count_of(0), LCOMM_FLOAT32, LCOMM_AVG));
    }
    launchable one;
    check(emulated_capture_begin(it.stream));
    check(device->copy(it.buffers[0], it.results[0], size, it.stream));
    require_fine(comm, lcomm_allreduce_on_stream(comm, it.buffers[0], it.buffers[0], count_of(0),
                                                 LCOMM_FLOAT32, LCOMM_AVG, it.stream));
    check(device->copy(it.results[0], it.buffers[0], size, it.stream));
    end_capture(&one, it.stream);
    for (int replay = 0; replay < IN_FLIGHT; replay++) {
      launch(&one, it.stream);
    }
    free_graph(&one); /* what was launched goes on */
    check(device->stream.finish(it.stream));
    require(memcmp(it.results[0], expected, size) == 0,
            "'%s': replays in flight give other bits than calls", policies[p]);
    require_fine(NULL, lcomm_destroy(comm));
    free_held(&it);
  }
}

static bool is_ready(const lcomm_run *run, uint32_t step) {
  return __atomic_load_n(lcomm_tape_ready(run, step), __ATOMIC_ACQUIRE) != 0;
}

/* Until its lanes have made and read all payloads, as far as anybody is told. */
static void await_lanes(const lcomm_recording *recording) {
  const lcomm_run *run = recording->run;
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    bool told =
        !lcomm_step_is_message(&run->plan->schedule.steps[i]) && run->tape->steps[i].announces;
    while (told && !is_ready(run, i)) {
      sleep_ms(1);
    }
  }
}

/* Until the replay before is over for its messages, too, and the next one may begin. */
static void settle(lcomm_comm *comm) {
  bool idle = false;
  while (!idle) {
    require_fine(comm, lcomm_enter(comm));
    const lcomm_recording *recording = comm->recordings.first;
    idle = recording->state == LCOMM_RECORDING_IDLE && *lcomm_tape_free_gate(recording->run) == 1;
    lcomm_exit(comm);
    sleep_ms(idle ? 0 : 1);
  }
}

/* All ranks hold their communicator, so nobody moves a message, and lanes come to the end of their
 * computations. Not where a launch may wait for memory that another thread frees. */
static void lanes_wait_for_no_message(void) {
  if (getenv("EMULATED_CHURN")) {
    return;
  }
  held it;
  make_wanted_of("algo=direct", 1);
  begin_held(&it);
  lcomm_comm *comm = make_driven("algo=direct", 1, LCOMM_PROGRESS_CALLS);
  launchable all = capture_sums(comm, &it, 0, 1, 1);
  for (int replay = 0; replay < REPLAYS; replay++) {
    restore(&it);
    settle(comm);
    MPI_Barrier(MPI_COMM_WORLD);
    hold_progress(comm);
    launch(&all, it.stream);
    await_lanes(comm->recordings.first);
    MPI_Barrier(MPI_COMM_WORLD);
    release_progress(comm);
    check(device->stream.finish(it.stream));
    require(memcmp(it.results[0], wanted[0], count_of(0) * sizeof(float)) == 0, "replay %d",
            replay);
  }
  free_graph(&all);
  require_fine(NULL, lcomm_destroy(comm));
  free_held(&it);
}

/* A communicator whose calls are captured in `made`, and replayed once. */
static lcomm_comm *begin_replayed(held *it, launchable *made) {
  begin_held(it);
  make_wanted_of("", 1);
  lcomm_comm *comm = make_driven("", 1, LCOMM_PROGRESS_CALLS);
  restore(it);
  *made = capture(comm, it);
  launch_to_the_end(made, it->stream);
  return comm;
}

/* What they need is given back once their graph is gone, by a call. */
static void recordings_end_with_their_graphs(void) {
  held it;
  launchable some;
  lcomm_comm *comm = begin_replayed(&it, &some);
  free_graph(&some);
  await_no_recordings(comm, &it);
  require_fine(NULL, lcomm_destroy(comm));
  free_held(&it);
}

/* One rank has data on its device that no other can open. */
static void what_cannot_be_opened_goes_through_the_host(void) {
  held it;
  make_wanted_of("", 1);
  begin_held(&it);
  if (mpi_rank == 0) {
    setenv("LCOMM_CUDA_IPC", "off", 1);
  }
  lcomm_comm *comm = make_driven("", 1, LCOMM_PROGRESS_CALLS);
  launchable all = capture(comm, &it);
  for (int replay = 0; replay < REPLAYS; replay++) {
    restore(&it);
    launch(&all, it.stream);
    check(device->stream.finish(it.stream));
    require_wanted(&it, "beside one that shares nothing");
  }
  require(mpi_rank > 0 || comm->runs.stayed == 0, "a payload stayed on a device");
  free_graph(&all);
  require_fine(NULL, lcomm_destroy(comm));
  unsetenv("LCOMM_CUDA_IPC");
  free_held(&it);
}

/* Results mean nothing then, and nothing waits. */
static void replays_pass_when_their_communicator_is_gone(void) {
  held it;
  launchable some;
  lcomm_comm *comm = begin_replayed(&it, &some);
  require_wanted(&it, "before the end");
  require_fine(NULL, lcomm_destroy(comm));
  for (int replay = 0; replay < REPLAYS + mpi_rank; replay++) {
    launch(&some, it.stream);
  }
  check(device->stream.finish(it.stream));
  free_graph(&some);
  comm = make_driven("net=none", 1, LCOMM_PROGRESS_CALLS);
  sum_in_stream(comm, &it, 0); /* frees what was left */
  check(device->stream.finish(it.stream));
  require_fine(NULL, lcomm_destroy(comm));
  free_held(&it);
}

static void nothing_is_left_where_the_next_devices_begin(void) {
  require_nothing_left_on_device();
  device = emulated_begin(&(emulated_setup){
      .devices = 2, .kernels = &lcomm_cuda_kernels_table, .seed = 12, .pause_us_max = 50});
  lcomm_device_replace(device);
}

/* Replays that are in flight, that are waiting, and that come later. */
static void replays_pass_when_a_rank_gives_up(void) {
  held it;
  begin_held(&it);
  make_wanted_of("", 1);
  lcomm_comm *comm = make_driven("", 1, LCOMM_PROGRESS_CALLS);
  launchable all = capture(comm, &it);
  give_up_in_replays(comm, &all, it.stream);
  (void)lcomm_destroy(comm);
  launch(&all, it.stream);
  check(device->stream.finish(it.stream));
  free_graph(&all);
  free_held(&it);
}

/* A rank that never replays is a silent peer: whoever moves messages finds out. */
static void a_rank_that_does_not_replay_is_named(void) {
  held it;
  begin_held(&it);
  make_wanted_of("", 1);
  lcomm_comm *comm = make_impatient(1, 3);
  launchable some = capture(comm, &it);
  require_rank_0_is_named(comm, &some, &it);
}

static void the_device_comes_to_an_end(void) {
  (void)emulated_end();
}

static const mpi_property properties[] = {
    PROPERTY(replays_give_what_calls_give),
    PROPERTY(replays_in_flight_follow_each_other),
    PROPERTY(lanes_wait_for_no_message),
    PROPERTY(recordings_end_with_their_graphs),
    PROPERTY(what_cannot_be_opened_goes_through_the_host),
    PROPERTY(replays_pass_when_their_communicator_is_gone),
    PROPERTY(nothing_is_left_where_the_next_devices_begin),
    PROPERTY(replays_pass_when_a_rank_gives_up),
    PROPERTY(a_rank_that_does_not_replay_is_named),
    PROPERTY(the_device_comes_to_an_end),
};
RUN_PROPERTIES(pausing_device_main, properties)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 4 8 */

/* Sums inside a node whose payloads stay on the devices of their senders, while another thread of
 * the program gets and frees memory. Runs that are given up keep their memory, so nothing is
 * counted at the end. */

#include "libcomm/engine/engine.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/exec.h"
#include "libcomm/engine/peer_memory.h"
#include "tests/engine/on_emulated_device.h"

enum { COUNT = 60000, TIMES = 5, IN_FLIGHT = 3 };

static const char *const policies[] = {"", "algo=direct", "algo=ring", "node=int8 min=1"};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

/* The same sums on the host, and on devices. */
typedef struct pair {
  lcomm_comm *here, *there;
  float *buffer;
  void *stream;
  int calls;
} pair;

static float given[COUNT], wanted[COUNT], got[COUNT];

static pair begin(const char *policy, lcomm_progress_mode mode) {
  pair it = {.here = make_comm(policy, 1), .there = make_driven(policy, 1, mode)};
  it.buffer = on_device(sizeof(given));
  check(device->stream.create(&it.stream));
  return it;
}

static void end(pair *it) {
  require_fine(NULL, lcomm_destroy(it->here));
  require_fine(NULL, lcomm_destroy(it->there));
  check(device->stream.destroy(it->stream));
  check(device->memory.free(it->buffer));
}

static void make_wanted(pair *it) {
  fill_gradient(given, COUNT, (uint64_t)(100 * ++it->calls + mpi_rank));
  memcpy(wanted, given, sizeof(given));
  require_fine(it->here,
               lcomm_allreduce(it->here, wanted, wanted, COUNT, LCOMM_FLOAT32, LCOMM_SUM));
}

static void require_wanted(const pair *it, const float *sums, const char *what) {
  require(memcmp(sums, wanted, sizeof(wanted)) == 0, "%s, call %d: other bits than on the host",
          what, it->calls);
}

static void sum_in_stream(pair *it) {
  make_wanted(it);
  to_device(it->buffer, given, sizeof(given));
  require_fine(it->there, lcomm_allreduce_on_stream(it->there, it->buffer, it->buffer, COUNT,
                                                    LCOMM_FLOAT32, LCOMM_SUM, it->stream));
  check(device->stream.finish(it->stream));
  from_device(got, it->buffer, sizeof(got));
  require_wanted(it, got, "in a stream");
}

/* lcomm_wait(), or this. */
typedef lcomm_status (*ending)(lcomm_comm *comm, lcomm_request *request);

static lcomm_status end_by_tests(lcomm_comm *comm, lcomm_request *request) {
  lcomm_status status = LCOMM_OK;
  for (int done = 0; !done && status == LCOMM_OK; sched_yield()) {
    status = lcomm_test(comm, request, &done);
  }
  return status;
}

/* With a request, of buffers on the device or on the host. */
static void sum_with_request(pair *it, bool on_host, ending end_of) {
  lcomm_request request = {0};
  make_wanted(it);
  to_device(it->buffer, given, sizeof(given));
  memcpy(got, given, sizeof(got));
  float *buffer = on_host ? got : it->buffer;
  require_fine(it->there, lcomm_iallreduce(it->there, buffer, buffer, COUNT, LCOMM_FLOAT32,
                                           LCOMM_SUM, &request));
  require_fine(it->there, end_of(it->there, &request));
  if (!on_host) {
    from_device(got, it->buffer, sizeof(got));
  }
  require_wanted(it, got, on_host ? "on the host" : "with a request");
}

static uint64_t stayed_everywhere(const pair *it) {
  uint64_t mine = it->there->runs.stayed, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

/* From the third operation of a shape on: it is offered with the first, opened before the second.
 * A ring sends on what it has received, from the host. */
static void payloads_stay_on_the_devices_of_their_senders(void) {
  static const lcomm_progress_mode modes[] = {LCOMM_PROGRESS_CALLS, LCOMM_PROGRESS_THREAD};
  for (int p = 0; p < POLICIES; p++) {
    pair it = begin(policies[p], modes[p % 2]);
    for (int i = 0; i < TIMES; i++) {
      sum_in_stream(&it);
    }
    for (int i = 0; i < TIMES; i++) {
      sum_with_request(&it, false, lcomm_wait);
    }
    bool sends_on = strstr(policies[p], "ring") != NULL;
    require(sends_on || stayed_everywhere(&it) > 0, "'%s': no payload stayed where it was",
            policies[p]);
    end(&it);
  }
}

/* Messages that the last call has received. */
static uint64_t count_received(lcomm_comm *comm) {
  uint64_t count = 0;
  require_fine(comm, lcomm_enter(comm));
  const lcomm_schedule *schedule = &comm->runs.cache.newest->plan->schedule;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    count += schedule->steps[i].kind == LCOMM_STEP_RECV;
  }
  lcomm_exit(comm);
  return count;
}

/* Once ranks have agreed: parts that are summed, and sums. */
static void no_payload_of_a_sum_inside_a_node_crosses_through_the_host(void) {
  for (int p = 0; p < POLICIES; p++) {
    if (strstr(policies[p], "ring")) {
      continue; /* it sends on what it has received */
    }
    pair it = begin(policies[p], LCOMM_PROGRESS_CALLS);
    for (int i = 0; i <= LCOMM_OPENING_OPERATIONS; i++) {
      sum_in_stream(&it);
      await_idle_runs(it.there);
    }
    uint64_t before = it.there->runs.stayed;
    sum_in_stream(&it);
    await_idle_runs(it.there);
    uint64_t here = it.there->runs.stayed - before, all = count_received(it.there);
    require(here == all && all > 0, "'%s': %llu of %llu payloads were read where they were",
            policies[p], (unsigned long long)here, (unsigned long long)all);
    end(&it);
  }
}

static void nothing_stays_where_that_is_switched_off(void) {
  setenv("LCOMM_CUDA_IPC", "off", 1);
  pair it = begin("", LCOMM_PROGRESS_CALLS);
  for (int i = 0; i < TIMES; i++) {
    sum_in_stream(&it);
  }
  require(stayed_everywhere(&it) == 0, "a payload stayed where it was");
  end(&it);
  unsetenv("LCOMM_CUDA_IPC");
}

/* Peers count on a rank that reads on their devices, and it has its data on the host all at once:
 * it reads there once more. */
static void move_to_the_host_and_back(ending end_of) {
  for (int p = 0; p < POLICIES; p++) {
    pair it = begin(policies[p], p % 2 ? LCOMM_PROGRESS_CALLS : LCOMM_PROGRESS_THREAD);
    for (int round = 0; round < 2; round++) {
      for (int i = 0; i < TIMES; i++) {
        sum_in_stream(&it);
      }
      for (int i = 0; i < TIMES; i++) {
        sum_with_request(&it, mpi_rank % 2 == round, end_of);
      }
    }
    end(&it);
  }
}

static void a_rank_may_move_to_the_host_and_back(void) {
  move_to_the_host_and_back(lcomm_wait);
}

static void a_rank_that_tests_may_move_to_the_host_and_back(void) {
  move_to_the_host_and_back(end_by_tests);
}

/* Buffers and a stream of their own, several shapes. */
typedef struct flight {
  lcomm_comm *comm;
  void *stream;
  float *buffers[IN_FLIGHT];
} flight;

static void sum_all(const flight *it) {
  for (int i = 0; i < IN_FLIGHT; i++) {
    (void)lcomm_allreduce_on_stream(it->comm, it->buffers[i], it->buffers[i],
                                    (uint64_t)(COUNT - 500 * i), LCOMM_FLOAT32, LCOMM_SUM,
                                    it->stream);
  }
}

/* Payloads stay on devices already. */
static flight take_off(double timeout_s) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.nodes = 1;
  config.timeout_s = timeout_s;
  flight it = {.comm = make_comm_if_possible(&config)};
  check(device->stream.create(&it.stream));
  for (int i = 0; i < IN_FLIGHT; i++) {
    it.buffers[i] = on_device(sizeof(given));
    check(device->set(it.buffers[i], 0, sizeof(given), it.stream));
  }
  for (int i = 0; i < TIMES; i++) {
    sum_all(&it);
    check(device->stream.finish(it.stream));
    require_fine(it.comm, lcomm_barrier(it.comm));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return it;
}

static void land(flight *it) {
  check(device->stream.finish(it->stream));
  (void)lcomm_destroy(it->comm);
  for (int i = 0; i < IN_FLIGHT; i++) {
    check(device->memory.free(it->buffers[i]));
  }
  check(device->stream.destroy(it->stream));
}

static void destroying_waits_for_sums_of_streams(void) {
  flight it = take_off(60);
  for (int i = 0; i < TIMES; i++) {
    sum_all(&it);
  }
  require_fine(NULL, lcomm_destroy(it.comm));
  it.comm = NULL;
  land(&it);
}

static void streams_go_on_when_a_rank_gives_up(void) {
  flight it = take_off(60);
  if (mpi_rank > 0) {
    sum_all(&it);
  } else {
    (void)lcomm_abort(it.comm, "no more electricity");
  }
  check(device->stream.finish(it.stream));
  MPI_Barrier(MPI_COMM_WORLD);
  lcomm_status status = lcomm_barrier(it.comm);
  require(status == LCOMM_ERR_ABORTED, "%s: %s", lcomm_status_name(status),
          lcomm_last_error(it.comm));
  land(&it);
}

static void streams_go_on_when_a_rank_is_silent(void) {
  flight it = take_off(4);
  if (mpi_rank > 0) {
    sum_all(&it);
  }
  check(device->stream.finish(it.stream));
  MPI_Barrier(MPI_COMM_WORLD);
  lcomm_status status = lcomm_barrier(it.comm);
  require(status != LCOMM_OK, "a sum was made without rank 0");
  land(&it);
}

/* Runs that were given up keep what they have; nothing of it is at work. */
static void the_device_comes_to_an_end(void) {
  (void)emulated_end();
}

static const mpi_property properties[] = {
    PROPERTY(payloads_stay_on_the_devices_of_their_senders),
    PROPERTY(no_payload_of_a_sum_inside_a_node_crosses_through_the_host),
    PROPERTY(nothing_stays_where_that_is_switched_off),
    PROPERTY(a_rank_may_move_to_the_host_and_back),
    PROPERTY(a_rank_that_tests_may_move_to_the_host_and_back),
    PROPERTY(destroying_waits_for_sums_of_streams),
    PROPERTY(streams_go_on_when_a_rank_gives_up),
    PROPERTY(streams_go_on_when_a_rank_is_silent),
    PROPERTY(the_device_comes_to_an_end),
};

int main(int argc, char **argv) {
  return churning_device_main(&argc, &argv, "13", WITH_COUNT(properties));
}

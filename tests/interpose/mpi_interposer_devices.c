/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Sums of MPI over buffers of emulated devices, that do not block. Threads of the interposer call
 * no CUDA, else the emulated device ends the program. */

#include <sched.h>
#include <string.h>

#include "tests/engine/on_device.h"
#include "tests/interpose/interposer_init.h"
#include "tests/support/emulated/emulated_device.h"
#include "tests/support/interposer_property.h"

enum { COUNT = 6000, IN_FLIGHT = 20, ROUNDS = 6, TAG = 3 };

static void before(void) {
  set_default("LCOMM_POLICY", "net=none min=0");
}

static bool is_exact(void) {
  const char *policy = getenv("LCOMM_POLICY");
  return !policy || strstr(policy, "net=none");
}

/* ----------------------------------------------------------------------- sums */

/* Whole numbers, whose sums are exact in every order. */
static float given(int rank, int i, int seed) {
  return (float)((rank * 31 + i * 7 + seed * 13) % 1000);
}

static float sum_of(int i, int seed) {
  float sum = 0;
  for (int rank = 0; rank < mpi_size; rank++) {
    sum += given(rank, i, seed);
  }
  return sum;
}

/* `send` has so many elements as all parts of a reduce-scatter, else COUNT. */
typedef struct device_sum {
  int seed, input_count, first; /* its result begins with that element of the sum */
  float *send, *receive;
} device_sum;

static float values[8 * COUNT];

static void put(float *there, int seed, int count) {
  for (int i = 0; i < count; i++) {
    values[i] = given(mpi_rank, i, seed);
  }
  to_device(there, values, (size_t)count * sizeof(float));
}

static device_sum new_sum(int seed, int parts) {
  device_sum it = {
      .seed = seed, .input_count = parts * COUNT, .first = parts > 1 ? mpi_rank * COUNT : 0};
  it.send = on_device((size_t)it.input_count * sizeof(float));
  it.receive = on_device(COUNT * sizeof(float));
  put(it.send, seed, it.input_count);
  return it;
}

static void start(const device_sum *it, MPI_Comm comm, MPI_Request *request) {
  MPI_Iallreduce(it->send, it->receive, COUNT, MPI_FLOAT, MPI_SUM, comm, request);
}

static void holds(const device_sum *it, const float *there, const char *what) {
  float tolerance = is_exact() ? 0 : 80.0F * (float)mpi_size;
  from_device(values, there, COUNT * sizeof(float));
  for (int i = 0; i < COUNT; i++) {
    float want = sum_of(it->first + i, it->seed), error = values[i] - want;
    if (!(error <= tolerance && error >= -tolerance)) {
      require(false, "%s: element %d is %g, not %g", what, i, (double)values[i], (double)want);
      return;
    }
  }
}

static void end(device_sum *it, const char *what) {
  holds(it, it->receive, what);
  check(device->memory.free(it->send));
  check(device->memory.free(it->receive));
}

/* The world's backing communicator exists, that of a new communicator does not. */
static MPI_Comm new_comm(void) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  return made;
}

/* ----------------------------------------------------------------- properties */

static void several_in_flight(MPI_Comm comm, const char *what) {
  device_sum sums[IN_FLIGHT];
  MPI_Request requests[IN_FLIGHT];
  for (int i = 0; i < IN_FLIGHT; i++) {
    sums[i] = new_sum(i, 1);
  }
  for (int i = 0; i < IN_FLIGHT; i++) {
    start(&sums[i], comm, &requests[i]);
  }
  MPI_Waitall(IN_FLIGHT, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < IN_FLIGHT; i++) {
    end(&sums[i], what);
  }
}

static void sums_in_flight_are_right(void) {
  MPI_Comm comm = new_comm();
  for (int round = 0; round < ROUNDS; round++) {
    several_in_flight(comm, round == 0 ? "the backing is being made" : "the backing is there");
  }
  MPI_Comm_free(&comm);
}

static void one_sum(MPI_Comm comm, const char *what) {
  device_sum sum = new_sum(1, 1);
  MPI_Request request;
  start(&sum, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  end(&sum, what);
}

static bool makes_plain_calls(void) {
  const char *policy = getenv("LCOMM_POLICY");
  bool plain = mpi_size > 1 && !(policy && strstr(policy, "+ef"));
  if (!plain) {
    skip_property("libcomm makes no call, or one with error feedback");
  }
  return plain;
}

static void the_call_itself_begins_on_the_device(void) {
  device_sum sum = new_sum(1, 1);
  MPI_Request request;
  one_sum(MPI_COMM_WORLD, "the first one");
  uint64_t calls = emulated_calls(EMULATED_CALL_LAUNCH);
  start(&sum, MPI_COMM_WORLD, &request);
  require(emulated_calls(EMULATED_CALL_LAUNCH) > calls, "nothing was launched by the call");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  end(&sum, "begun by the call");
}

/* By the program's thread, which makes the call and learns of its end. */
static void a_call_that_cannot_begin_copies_to_the_host_and_back(void) {
  MPI_Comm comm = new_comm();
  device_sum sum = new_sum(1, 1);
  MPI_Request request;
  uint64_t before_call = emulated_calls(EMULATED_CALL_COPY);
  start(&sum, comm, &request);
  uint64_t after_call = emulated_calls(EMULATED_CALL_COPY);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  uint64_t after_wait = emulated_calls(EMULATED_CALL_COPY);
  require(after_call == before_call + 1 && after_wait == after_call + 1,
          "%d copies in the call, %d in MPI_Wait", (int)(after_call - before_call),
          (int)(after_wait - after_call));
  end(&sum, "staged");
  MPI_Comm_free(&comm);
}

/* Rank 0 waits for a message of the last rank first, which is sent when that rank has its sum. */
static void a_sum_needs_no_call_of_a_rank_that_waits_for_something_else(void) {
  for (int round = 0; round < ROUNDS; round++) {
    MPI_Comm comm = round % 2 == 0 ? new_comm() : MPI_COMM_WORLD;
    device_sum sum = new_sum(round, 1);
    MPI_Request request;
    int token = round;
    start(&sum, comm, &request);
    if (mpi_rank == 0 && mpi_size > 1) {
      MPI_Recv(&token, 1, MPI_INT, mpi_size - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (mpi_rank == mpi_size - 1 && mpi_size > 1) {
      MPI_Send(&token, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
    }
    end(&sum, "a rank waits for a message");
    if (comm != MPI_COMM_WORLD) {
      MPI_Comm_free(&comm);
    }
  }
}

static void end_in_place(device_sum *it, const char *what) {
  holds(it, it->send, what);
  check(device->memory.free(it->send));
  check(device->memory.free(it->receive));
}

static void in_place(MPI_Comm comm) {
  device_sum sum = new_sum(5, 1);
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, sum.send, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  end_in_place(&sum, "in place");
}

static void scattered(MPI_Comm comm) {
  device_sum sum = new_sum(6, mpi_size);
  MPI_Request request;
  MPI_Ireduce_scatter_block(sum.send, sum.receive, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  end(&sum, "reduce-scatter");
}

static void scattered_in_place(MPI_Comm comm) {
  device_sum sum = new_sum(7, mpi_size);
  MPI_Request request;
  MPI_Ireduce_scatter_block(MPI_IN_PLACE, sum.send, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  end_in_place(&sum, "reduce-scatter in place");
}

static void all_kinds_of_sums_are_right(void) {
  void (*const kinds[])(MPI_Comm) = {in_place, scattered, scattered_in_place};
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    MPI_Comm comm = new_comm();
    for (int round = 0; round < 3; round++) {
      kinds[i](comm);
    }
    MPI_Comm_free(&comm);
  }
}

/* More of the host than are in flight at a time, one of the device, and again. */
static void sums_of_the_host_and_of_the_device_keep_their_order(void) {
  static float here[2 * IN_FLIGHT][2][COUNT];
  MPI_Request requests[2 * IN_FLIGHT + 2];
  MPI_Comm comm = new_comm();
  device_sum sums[2];
  int made = 0;
  for (int i = 0; i < 2 * IN_FLIGHT; i++) {
    for (int j = 0; j < COUNT; j++) {
      here[i][0][j] = given(mpi_rank, j, i);
    }
    MPI_Iallreduce(here[i][0], here[i][1], COUNT, MPI_FLOAT, MPI_SUM, comm, &requests[made++]);
    if (i % IN_FLIGHT == IN_FLIGHT - 1) {
      sums[i / IN_FLIGHT] = new_sum(i, 1);
      start(&sums[i / IN_FLIGHT], comm, &requests[made++]);
    }
  }
  MPI_Waitall(made, requests, MPI_STATUSES_IGNORE);
  end(&sums[0], "between those of the host");
  end(&sums[1], "behind those of the host");
  require(!is_exact() || here[IN_FLIGHT][1][9] == sum_of(9, IN_FLIGHT), "one of the host is wrong");
  MPI_Comm_free(&comm);
}

/* Ranks are on devices now, on the host then: peers that leave payloads on their devices meet ranks
 * that cannot fetch them. */
static void ranks_may_have_their_buffers_anywhere(void) {
  static float here[2][COUNT];
  for (int round = 0; round < 4 * ROUNDS; round++) {
    MPI_Request request;
    device_sum sum = new_sum(round, 1);
    bool on_host = round > ROUNDS && (round + mpi_rank) % 3 == 0;
    if (on_host) {
      from_device(here[0], sum.send, sizeof(here[0]));
      MPI_Iallreduce(here[0], here[1], COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      to_device(sum.receive, here[1], sizeof(here[1]));
    } else {
      start(&sum, MPI_COMM_WORLD, &request);
      for (int done = 0; !done; sched_yield()) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      }
    }
    end(&sum, on_host ? "on the host" : "on the device");
  }
}

/* As the interposer's function has it. */
typedef int (*init_function)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                             MPI_Request *);
static init_function allreduce_init = ALLREDUCE_INIT;

static bool has_persistent(void) {
  bool has = allreduce_init != NULL;
  if (!has) {
    skip_property("this MPI has no persistent all-reduce");
  }
  return has;
}

/* Nobody calls a function that reads what a peer has left on its device: a thread does so in the
 * end. */
static void ranks_on_the_host_need_no_call_for_what_lies_on_devices(void) {
  static float here[2][COUNT];
  for (int round = 0; round < ROUNDS; round++) {
    MPI_Request request;
    device_sum sum = new_sum(round, 1);
    bool on_host = round == ROUNDS - 1 && mpi_rank == 0;
    int token = 0;
    if (on_host) {
      from_device(here[0], sum.send, sizeof(here[0]));
      MPI_Iallreduce(here[0], here[1], COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
    } else {
      start(&sum, MPI_COMM_WORLD, &request);
    }
    if (mpi_rank == 0 && mpi_size > 1) {
      MPI_Recv(&token, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (mpi_rank == 1) {
      MPI_Send(&token, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
    }
    if (on_host) {
      to_device(sum.receive, here[1], sizeof(here[1]));
    }
    end(&sum, "rank 0 is on the host in the end");
  }
}

static void persistent_sums_are_right(void) {
  MPI_Comm comm = new_comm();
  device_sum sum = new_sum(0, 1);
  MPI_Request request;
  allreduce_init(sum.send, sum.receive, COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &request);
  for (int round = 0; round < 2 * ROUNDS; round++) {
    sum.seed = round;
    put(sum.send, round, COUNT);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    holds(&sum, sum.receive, "persistent");
  }
  MPI_Request_free(&request);
  end(&sum, "the last one");
  MPI_Comm_free(&comm);
}

/* The first calls are exact, until the pattern is known. */
static void blocking_sums_of_a_step_are_right(void) {
  for (int step = 0; step < 4 * ROUNDS; step++) {
    device_sum sum = new_sum(step, 1);
    MPI_Allreduce(sum.send, sum.receive, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    end(&sum, "a blocking sum");
  }
}

static const mpi_property properties[] = {
    PROPERTY(sums_in_flight_are_right),
    PROPERTY_WHERE(makes_plain_calls, the_call_itself_begins_on_the_device),
    PROPERTY_WHERE(makes_plain_calls, a_call_that_cannot_begin_copies_to_the_host_and_back),
    PROPERTY(a_sum_needs_no_call_of_a_rank_that_waits_for_something_else),
    PROPERTY(all_kinds_of_sums_are_right),
    PROPERTY(sums_of_the_host_and_of_the_device_keep_their_order),
    PROPERTY(ranks_may_have_their_buffers_anywhere),
    PROPERTY(ranks_on_the_host_need_no_call_for_what_lies_on_devices),
    PROPERTY_WHERE(has_persistent, persistent_sums_are_right),
    PROPERTY(blocking_sums_of_a_step_are_right),
};

int main(int argc, char **argv) {
  const emulated_setup setup = {
      .devices = 2, .kernels = &lcomm_cuda_kernels_table, .seed = 11, .pause_us_max = 50};
  device = emulated_begin(&setup);
  lcomm_device_replace(device);
  int code = interposer_property_main(&argc, &argv, before, WITH_COUNT(properties));
  int left = emulated_end();
  if (left != 0) {
    printf("FAIL nothing_is_left_on_the_device: %d pieces of memory, streams and events\n", left);
  }
  return code ? code : left != 0;
}

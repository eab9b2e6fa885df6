/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 8 */

/* Messages of the program that are in flight while a call is made: a rank comes to the call
 * only when its message has gone, which needs its partner, who waits in the call already.
 * MPI makes progress in its own calls, so a call that is taken has to let it. */

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interpose/interposer_kinds.h"
#include "tests/support/interposer_calls.h"
#include "tests/support/interposer_property.h"

enum { COUNT = 6000, TAG = 5, SHORT = 100, LONG = 1500000 };

static unsigned char *out, *in;

/* Rules for gathers and broadcasts, which are MPI's without. */
static void before(void) {
  set_default("LCOMM_POLICY",
              "net=none min=0 match=dtype=float32,dtype=float64,call=allgather,call=broadcast");
  out = malloc(LONG);
  in = malloc(LONG);
  if (!out || !in) {
    abort();
  }
}

/* ------------------------------------------------------------------ messages */

/* Ranks talk in pairs; the last of an odd number talks to itself. */
static int partner(void) {
  int other = mpi_rank ^ 1;
  return other < mpi_size ? other : mpi_rank;
}

/* The first of a pair completes its messages before the call, the other one after it. */
static bool is_first(void) {
  return mpi_rank % 2 == 0 && partner() != mpi_rank;
}

static void fill_messages(int size) {
  memset(out, mpi_rank + 1, (size_t)size);
  memset(in, 0, (size_t)size);
}

static void check_message(int size, const char *what) {
  bool same = true;
  for (int i = 0; i < size && same; i++) {
    same = in[i] == partner() + 1;
  }
  require(same, "%s: a message of %d bytes is not what was sent", what, size);
}

static void receive(int size, MPI_Request *request) {
  MPI_Irecv(in, size, MPI_BYTE, partner(), TAG, MPI_COMM_WORLD, request);
}

static void send(int size, MPI_Request *request) {
  MPI_Isend(out, size, MPI_BYTE, partner(), TAG, MPI_COMM_WORLD, request);
}

/* -------------------------------------------------------------------- calls */

static interposer_call call_of(interposer_function function) {
  interposer_call call = {.function = function,
                          .comm = MPI_COMM_WORLD,
                          .type = MPI_FLOAT,
                          .op = MPI_SUM,
                          .count = COUNT,
                          .root = mpi_size - 1};
  for (int i = 0; i < mpi_size; i++) {
    call.parts[i] = COUNT;
  }
  return call;
}

/* Without a policy that rounds, the bits are those of MPI. */
static void make_call(interposer_function function, const char *what) {
  const char *policy = getenv("LCOMM_POLICY");
  bool exact = !policy || !*policy || strstr(policy, "net=none");
  interposer_call call = call_of(function);
  interposer_buffers buffers = interposer_buffers_for(&call);
  fill_floats(buffers.send, buffers.send_bytes, 7 + (uint64_t)mpi_rank);
  interposer_codes codes = interposer_make_both(&call, &buffers);
  interposer_result result = interposer_result_of(&call, &buffers);
  require(codes.called == MPI_SUCCESS, "%s: %s failed", what, interposer_function_names[function]);
  require(!exact || memcmp(buffers.called, buffers.plain, result.size) == 0,
          "%s: %s gives other bits than MPI", what, interposer_function_names[function]);
  interposer_buffers_free(&buffers);
}

/* ------------------------------------------------------------------- patterns */

typedef void (*pattern_function)(interposer_function function, int size);

static void blocking_send(interposer_function function, int size) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (is_first()) {
    MPI_Send(out, size, MPI_BYTE, partner(), TAG, MPI_COMM_WORLD);
    make_call(function, "send, call");
    MPI_Recv(in, size, MPI_BYTE, partner(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Request back;
    receive(size, &request);
    make_call(function, "receive posted, call, wait");
    send(size, &back);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Wait(&back, MPI_STATUS_IGNORE);
  }
}

static void synchronous_send(interposer_function function, int size) {
  MPI_Request requests[2];
  if (is_first()) {
    receive(size, &requests[1]);
    MPI_Ssend(out, size, MPI_BYTE, partner(), TAG, MPI_COMM_WORLD);
    make_call(function, "synchronous send, call");
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  } else {
    receive(size, &requests[0]);
    send(size, &requests[1]);
    make_call(function, "both posted, call, test");
    for (int over = 0; !over; sched_yield()) {
      MPI_Testall(2, requests, &over, MPI_STATUSES_IGNORE);
    }
  }
}

static void call_before_both(interposer_function function, const char *when,
                             MPI_Request requests[2]) {
  make_call(function, when);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void blocking_receive(interposer_function function, int size) {
  MPI_Request requests[2];
  if (is_first()) {
    send(size, &requests[0]);
    MPI_Recv(in, size, MPI_BYTE, partner(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    make_call(function, "receive, call");
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  } else {
    send(size, &requests[0]);
    receive(size, &requests[1]);
    call_before_both(function, "send posted, call, wait", requests);
  }
}

static void both_ways(interposer_function function, int size) {
  MPI_Request requests[2];
  if (is_first()) {
    MPI_Sendrecv(out, size, MPI_BYTE, partner(), TAG, in, size, MPI_BYTE, partner(), TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    make_call(function, "exchange, call");
  } else {
    receive(size, &requests[0]);
    send(size, &requests[1]);
    call_before_both(function, "both posted, call, wait", requests);
  }
}

static void test_loop_before(interposer_function function, int size) {
  MPI_Request requests[2];
  receive(size, &requests[0]);
  send(size, &requests[1]);
  for (int over = !is_first(); !over; sched_yield()) {
    MPI_Testall(2, requests, &over, MPI_STATUSES_IGNORE);
  }
  call_before_both(function, "test loop, call", requests);
}

static void with_every_call(pattern_function pattern, const char *name) {
  static const int sizes[] = {SHORT, LONG};
  for (int function = 0; function < INTERPOSER_FUNCTIONS; function++) {
    for (int i = 0; i < 2 && interposer_function_exists((interposer_function)function); i++) {
      fill_messages(sizes[i]);
      pattern((interposer_function)function, sizes[i]);
      check_message(sizes[i], name);
    }
  }
}

static void a_blocking_send_ends_though_its_receiver_is_in_a_call(void) {
  with_every_call(blocking_send, "send");
}

static void a_synchronous_send_ends_though_its_receiver_is_in_a_call(void) {
  with_every_call(synchronous_send, "synchronous send");
}

static void a_blocking_receive_ends_though_its_sender_is_in_a_call(void) {
  with_every_call(blocking_receive, "receive");
}

static void an_exchange_ends_though_its_partner_is_in_a_call(void) {
  with_every_call(both_ways, "exchange");
}

static void a_test_loop_ends_though_its_partner_is_in_a_call(void) {
  with_every_call(test_loop_before, "test loop");
}

/* ------------------------------------------------------- requests of calls */

/* The call does not block, but the wait for it does. */
static void waits_for_sums_let_messages_pass(void) {
  float sums[3] = {1, 1, 1};
  MPI_Request requests[3], message[2];
  fill_messages(LONG);
  receive(LONG, &message[0]);
  send(LONG, &message[1]);
  if (is_first()) {
    MPI_Waitall(2, message, MPI_STATUSES_IGNORE);
  }
  for (int i = 0; i < 3; i++) {
    MPI_Iallreduce(MPI_IN_PLACE, &sums[i], 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  MPI_Waitall(2, message, MPI_STATUSES_IGNORE);
  check_message(LONG, "waits for sums");
  require(sums[0] == (float)mpi_size && sums[1] == (float)mpi_size && sums[2] == (float)mpi_size,
          "a sum is wrong");
}

/* A call that blocks waits for those before it. */
static void calls_behind_pending_sums_let_messages_pass(void) {
  float sums[2] = {1, 1};
  MPI_Request request, message[2];
  fill_messages(LONG);
  receive(LONG, &message[0]);
  send(LONG, &message[1]);
  if (is_first()) {
    MPI_Waitall(2, message, MPI_STATUSES_IGNORE);
  }
  MPI_Iallreduce(MPI_IN_PLACE, &sums[0], 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Allreduce(MPI_IN_PLACE, &sums[1], 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Waitall(2, message, MPI_STATUSES_IGNORE);
  check_message(LONG, "a call behind a pending sum");
  require(sums[0] == (float)mpi_size && sums[1] == (float)mpi_size, "a sum is wrong");
}

/* --------------------------------------------------------------- halo exchange */

/* What solvers do: post, compute, sum, complete; some of them before, some after the sum. */
static void halo_exchanges_with_sums_go_on(void) {
  enum { STEPS = 20, HALO = 40000 };
  int left = (mpi_rank + mpi_size - 1) % mpi_size, right = (mpi_rank + 1) % mpi_size;
  static unsigned char halo[4][HALO];
  for (int step = 0; step < STEPS; step++) {
    MPI_Request requests[4];
    double residual = 1;
    memset(halo[0], step + mpi_rank, HALO);
    memset(halo[1], step + mpi_rank, HALO);
    MPI_Irecv(halo[2], HALO, MPI_BYTE, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(halo[3], HALO, MPI_BYTE, right, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(halo[0], HALO, MPI_BYTE, right, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(halo[1], HALO, MPI_BYTE, left, 2, MPI_COMM_WORLD, &requests[3]);
    if ((mpi_rank + step) % 3 == 0) {
      MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Allreduce(MPI_IN_PLACE, &residual, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    require(residual == mpi_size, "step %d: the sum is %g", step, residual);
    require(halo[2][HALO - 1] == (unsigned char)(step + left) &&
                halo[3][0] == (unsigned char)(step + right),
            "step %d: a halo is wrong", step);
  }
}

static const mpi_property properties[] = {
    PROPERTY(a_blocking_send_ends_though_its_receiver_is_in_a_call),
    PROPERTY(a_synchronous_send_ends_though_its_receiver_is_in_a_call),
    PROPERTY(a_blocking_receive_ends_though_its_sender_is_in_a_call),
    PROPERTY(an_exchange_ends_though_its_partner_is_in_a_call),
    PROPERTY(a_test_loop_ends_though_its_partner_is_in_a_call),
    PROPERTY(waits_for_sums_let_messages_pass),
    PROPERTY(calls_behind_pending_sums_let_messages_pass),
    PROPERTY(halo_exchanges_with_sums_go_on),
};

int main(int argc, char **argv) {
  int code = interposer_property_main(&argc, &argv, before, WITH_COUNT(properties));
  free(out);
  free(in);
  return code;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 */

/* Messages between two ranks in order with a stream, also on devices whose streams cannot wait for
 * numbers. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/plan/pipe.h"
#include "tests/engine/on_emulated_device.h"

enum { LONGEST = 3 << 20, SIZES = 6, MESSAGES = 5 };

static const uint64_t sizes[SIZES] = {0, 1, 4080, 70000, 1 << 20, LONGEST};

static _Alignas(64) uint8_t given[LONGEST], got[LONGEST];

typedef struct buffers {
  lcomm_comm *comm;
  uint8_t *from, *to;
  void *stream;
  int left, right;
} buffers;

static buffers begin(void) {
  buffers it = {.comm = make_driven("", 1, LCOMM_PROGRESS_CALLS),
                .left = (mpi_rank + mpi_size - 1) % mpi_size,
                .right = (mpi_rank + 1) % mpi_size};
  it.from = on_device(LONGEST);
  it.to = on_device(LONGEST);
  check(device->stream.create(&it.stream));
  return it;
}

static void end(buffers *it) {
  require_fine(NULL, lcomm_destroy(it->comm));
  check(device->stream.destroy(it->stream));
  check(device->memory.free(it->from));
  check(device->memory.free(it->to));
}

static uint8_t byte_of(int rank, uint64_t place) {
  return (uint8_t)(rank * 31 + 7 + (int)(place % 251));
}

static void fill(int rank) {
  for (uint64_t i = 0; i < LONGEST; i++) {
    given[i] = byte_of(rank, i);
  }
}

static void send(const buffers *it, uint64_t first, uint64_t size) {
  require_fine(it->comm, lcomm_send_on_stream(it->comm, it->from + first, size, LCOMM_UINT8,
                                              it->right, it->stream));
}

static void receive(const buffers *it, uint64_t first, uint64_t size) {
  require_fine(it->comm, lcomm_receive_on_stream(it->comm, it->to + first, size, LCOMM_UINT8,
                                                 it->left, it->stream));
}

static void require_received(const buffers *it, uint64_t size) {
  check(device->stream.finish(it->stream));
  from_device(got, it->to, LONGEST);
  for (uint64_t i = 0; i < size; i++) {
    require(got[i] == byte_of(it->left, i), "byte %llu of %llu", (unsigned long long)i,
            (unsigned long long)size);
  }
}

static void messages_of_any_size_go_round_a_ring(void) {
  buffers it = begin();
  fill(mpi_rank);
  to_device(it.from, given, LONGEST);
  for (int i = 0; i < SIZES; i++) {
    check(device->set(it.to, 0, LONGEST, it.stream));
    send(&it, 0, sizes[i]);
    receive(&it, 0, sizes[i]);
    require_received(&it, sizes[i]);
  }
  end(&it);
}

/* None of them is waited for before the next. */
static void several_are_in_flight(void) {
  enum { EACH = 5000 };
  buffers it = begin();
  fill(mpi_rank);
  to_device(it.from, given, LONGEST);
  for (uint64_t i = 0; i < MESSAGES; i++) {
    send(&it, i * EACH, EACH);
  }
  for (uint64_t i = 0; i < MESSAGES; i++) {
    receive(&it, i * EACH, EACH);
  }
  require_received(&it, (uint64_t)MESSAGES * EACH);
  end(&it);
}

/* In a group the receive may come first: on the other ranks nothing has been sent by then. */
static void grouped_receives_begin_behind_the_sends(void) {
  buffers it = begin();
  fill(mpi_rank);
  to_device(it.from, given, LONGEST);
  require_fine(it.comm, lcomm_group_begin(it.comm));
  receive(&it, 0, LONGEST);
  send(&it, 0, LONGEST);
  require_fine(it.comm, lcomm_group_end(it.comm));
  require_received(&it, LONGEST);
  end(&it);
}

/* What the codec makes of a neighbour's values, if it is on another node. */
static void pass_through(const lcomm_comm *comm, int from, float *values, uint64_t count) {
  lcomm_format format =
      lcomm_pipe_format(&comm->settings.policy, &comm->topo, from, mpi_rank, LCOMM_FLOAT32, count);
  lcomm_range range = lcomm_range_whole(count);
  uint8_t *payload = malloc(lcomm_payload_size(&format, count) + 8);
  lcomm_encode(&format, lcomm_kernels_best(), values, range, 0, payload);
  lcomm_decode(&format, lcomm_kernels_best(), payload, range, 1, values);
  free(payload);
}

static void between_nodes_they_go_through_the_codec(void) {
  enum { COUNT = LONGEST / sizeof(float) };
  buffers it = begin();
  float *values = malloc(LONGEST);
  require_fine(NULL, lcomm_destroy(it.comm));
  it.comm = make_driven("pipe=int8", two_nodes(), LCOMM_PROGRESS_CALLS);
  fill_gradient(values, COUNT, (uint64_t)mpi_rank);
  to_device(it.from, values, LONGEST);
  require_fine(it.comm,
               lcomm_send_on_stream(it.comm, it.from, COUNT, LCOMM_FLOAT32, it.right, it.stream));
  require_fine(it.comm,
               lcomm_receive_on_stream(it.comm, it.to, COUNT, LCOMM_FLOAT32, it.left, it.stream));
  check(device->stream.finish(it.stream));
  from_device(got, it.to, LONGEST);
  fill_gradient(values, COUNT, (uint64_t)it.left);
  pass_through(it.comm, it.left, values, COUNT);
  require(memcmp(got, values, LONGEST) == 0, "other values than those of the codec");
  end(&it);
  free(values);
}

static void memory_of_a_device_needs_a_stream(void) {
  buffers it = begin();
  require(lcomm_send(it.comm, it.from, 1, LCOMM_UINT8, it.right) == LCOMM_ERR_ARGUMENT, "taken");
  require(strstr(lcomm_last_error(it.comm), "lcomm_send_on_stream") != NULL, "%s",
          lcomm_last_error(it.comm));
  end(&it);
}

/* One side has its data on the host. */
static void host_and_device_exchange_messages(void) {
  buffers it = begin();
  lcomm_request sent = {0};
  fill(mpi_rank);
  require_fine(it.comm, lcomm_isend(it.comm, given, LONGEST, LCOMM_UINT8, it.right, &sent));
  receive(&it, 0, LONGEST);
  require_received(&it, LONGEST);
  require_fine(it.comm, lcomm_wait(it.comm, &sent));
  end(&it);
}

/* The same there. */
static void kernels_wait_where_streams_cannot(void) {
  emulated_setup setup = {
      .devices = 1, .kernels = &lcomm_cuda_kernels_table, .seed = 5, .without_waits = true};
  device = emulated_begin(&setup);
  lcomm_device_replace(device);
  check(device->use(0));
  messages_of_any_size_go_round_a_ring();
  several_are_in_flight();
  require_nothing_left_on_device();
}

static const mpi_property properties[] = {
    PROPERTY(messages_of_any_size_go_round_a_ring),
    PROPERTY(several_are_in_flight),
    PROPERTY(grouped_receives_begin_behind_the_sends),
    PROPERTY(between_nodes_they_go_through_the_codec),
    PROPERTY(memory_of_a_device_needs_a_stream),
    PROPERTY(host_and_device_exchange_messages),
    PROPERTY(nothing_is_left_on_the_device),
    PROPERTY(kernels_wait_where_streams_cannot),
};
RUN_PROPERTIES(pausing_device_main, properties)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 */

/* Messages between two ranks in order with a stream, also on devices whose streams cannot wait for
 * numbers. */

#include "tests/engine/on_emulated_device.h"

enum { LONGEST = 3 << 20, SIZES = 6, MESSAGES = 5 };

static const uint64_t sizes[SIZES] = {0, 1, 4080, 70000, 1 << 20, LONGEST};

static uint8_t given[LONGEST], got[LONGEST];

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
    PROPERTY(nothing_is_left_on_the_device),
    PROPERTY(kernels_wait_where_streams_cannot),
};
RUN_PROPERTIES(pausing_device_main, properties)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_DEVICE_SHARING_H
#define LCOMM_TESTS_DEVICE_SHARING_H

/* What every device does, emulated or real, for several processes. They are forked
 * before this process has opened a device, which would not survive that; so these
 * tests come first in a program. */

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/device/device_properties.h"
#include "tests/support/forked.h"

/* How a forked process opens and closes its device; NULL: there is none. Closing
 * tells how many objects it had not given back. */
static const lcomm_device_table *sharing_open(void);
static int sharing_close(void);

static _Atomic int *sharing_impossible; /* set by the processes */
static void *sharing_page;              /* that all see */

#define REQUIRE(call) require(self, call, #call)

static inline void require(forked *self, int error, const char *what) {
  forked_require(self, error == 0, "%s: %s", what, device->explain(error));
}

/* Each process uses the device of its rank, if there are as many. False: this
 * device cannot share. */
static inline bool enter(forked *self) {
  lcomm_device_facts facts;
  int count = 0;
  device = sharing_open();
  if (!device) {
    *sharing_impossible = 1;
    return false;
  }
  REQUIRE(device->count(&count));
  REQUIRE(device->use(self->rank % count));
  REQUIRE(device->facts(self->rank % count, &facts));
  if (!facts.shares_memory) {
    *sharing_impossible = 1;
    return false;
  }
  return true;
}

static inline void leave(forked *self) {
  int left = sharing_close();
  forked_require(self, left == 0, "%d objects were left", left);
}

static inline void shared_test(void **state) {
  size_t size = (size_t)sysconf(_SC_PAGESIZE);
  unsigned char *pages =
      mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(pages, MAP_FAILED);
  sharing_impossible = (_Atomic int *)(void *)pages;
  sharing_page = pages + size;
  forked_test(state);
  int impossible = *sharing_impossible;
  munmap(pages, 2 * size);
  if (impossible) {
    skip();
  }
}

/* FORKED_TEST, skipped where the device shares nothing. */
#define SHARED_TEST(property, ...) FORKED_TEST_BY(shared_test, property, __VA_ARGS__)

/* -------------------------------------------------------------------- memory */

enum { SHARED_SIZE = 5000, SHARED_OFFSET = 777 };

static void look_into_memory(forked *self, const lcomm_device_ipc *ipc) {
  void *memory = NULL, *pinned = NULL;
  REQUIRE(device->ipc.open(ipc, &memory));
  REQUIRE(device->memory.pinned_get(SHARED_SIZE, &pinned));
  forked_require(self, ipc->offset + SHARED_SIZE - SHARED_OFFSET <= ipc->size, "offset %d of %d",
                 (int)ipc->offset, (int)ipc->size);
  forked_require(self, device->locate(memory).kind == LCOMM_MEMORY_DEVICE, "of another kind");
  unsigned char *there = (unsigned char *)memory + ipc->offset, *got = pinned;
  REQUIRE(device->copy(got, there, SHARED_SIZE - SHARED_OFFSET, NULL));
  REQUIRE(device->set(there, 0x5a, 10, NULL));
  REQUIRE(device->stream.finish(NULL));
  for (size_t i = 0; i < SHARED_SIZE - SHARED_OFFSET; i++) {
    forked_require(self, got[i] == pattern(i + SHARED_OFFSET, 9), "byte %zu is %d", i, got[i]);
  }
  REQUIRE(device->memory.pinned_free(pinned));
  REQUIRE(device->ipc.close(memory));
}

static void memory_is_seen_and_written_by_another_process(forked *self) {
  void *memory = NULL;
  unsigned char bytes[SHARED_SIZE];
  lcomm_device_ipc ipc;
  if (!enter(self)) {
    return;
  }
  for (size_t i = 0; i < SHARED_SIZE; i++) {
    bytes[i] = pattern(i, 9);
  }
  if (self->rank == 0) {
    REQUIRE(device->memory.get(SHARED_SIZE, &memory));
    REQUIRE(device->copy(memory, bytes, SHARED_SIZE, NULL));
    REQUIRE(device->stream.finish(NULL));
    REQUIRE(device->ipc.get((unsigned char *)memory + SHARED_OFFSET, &ipc));
    memcpy(self->shared, &ipc, sizeof(ipc));
  }
  forked_barrier(self);
  if (self->rank == 1) {
    memcpy(&ipc, self->shared, sizeof(ipc));
    look_into_memory(self, &ipc);
  }
  forked_barrier(self);
  if (self->rank == 0) {
    memset(bytes + SHARED_OFFSET, 0x5a, 10);
    unsigned char got[SHARED_SIZE];
    REQUIRE(device->copy(got, memory, SHARED_SIZE, NULL));
    REQUIRE(device->stream.finish(NULL));
    forked_require(self, memcmp(got, bytes, SHARED_SIZE) == 0, "other bytes");
    REQUIRE(device->memory.free(memory));
  }
  leave(self);
}

/* Pieces of one allocation go together, and pieces of others do not. */
static void pieces_of_an_allocation_have_its_number(forked *self) {
  void *first = NULL, *second = NULL;
  lcomm_device_ipc a, b, c;
  if (!enter(self)) {
    return;
  }
  REQUIRE(device->memory.get(4000000, &first));
  REQUIRE(device->memory.get(4000000, &second));
  REQUIRE(device->ipc.get(first, &a));
  REQUIRE(device->ipc.get((char *)first + 3999999, &b));
  REQUIRE(device->ipc.get(second, &c));
  forked_require(self, a.offset == 0 && b.offset == 3999999, "offsets %d, %d", (int)a.offset,
                 (int)b.offset);
  forked_require(self, a.size >= 4000000 && a.size == b.size, "sizes");
  forked_require(self, a.allocation == b.allocation && a.allocation != c.allocation, "numbers");
  forked_require(self, memcmp(a.handle, b.handle, sizeof(a.handle)) == 0, "handles of one");
  forked_require(self, memcmp(a.handle, c.handle, sizeof(a.handle)) != 0, "handles of two");
  REQUIRE(device->memory.free(first));
  REQUIRE(device->memory.free(second));
  leave(self);
}

/* An array on the stack, one of the heap, pinned memory; an event of one process. */
static void memory_of_the_host_is_not_shared(forked *self) {
  void *pinned = NULL, *event = NULL;
  uint8_t handle[LCOMM_DEVICE_IPC_SIZE];
  lcomm_device_ipc ipc;
  if (!enter(self)) {
    return;
  }
  REQUIRE(device->memory.pinned_get(100, &pinned));
  REQUIRE(device->event.create(false, &event));
  forked_require(self, device->ipc.get(&ipc, &ipc) != 0, "memory of the host");
  forked_require(self, device->ipc.get(pinned, &ipc) != 0, "pinned memory");
  forked_require(self, device->ipc.get(NULL, &ipc) != 0, "NULL");
  forked_require(self, device->ipc.event_get(event, handle) != 0, "an event");
  REQUIRE(device->event.destroy(event));
  REQUIRE(device->memory.pinned_free(pinned));
  leave(self);
}

/* -------------------------------------------------------------------- events */

/* Rank 0 holds its stream, and with it that of rank 1. */
typedef struct shared_event {
  lcomm_device_ipc memory;
  uint8_t event[LCOMM_DEVICE_IPC_SIZE];
} shared_event;

static void wait_for_other(forked *self) {
  void *memory = NULL, *pinned = NULL, *event = NULL, *stream = NULL, *end = NULL;
  shared_event offer;
  bool over = true;
  memcpy(&offer, self->shared, sizeof(offer));
  REQUIRE(device->ipc.open(&offer.memory, &memory));
  REQUIRE(device->ipc.event_open(offer.event, &event));
  REQUIRE(device->memory.pinned_get(1, &pinned));
  REQUIRE(device->stream.create(&stream));
  REQUIRE(device->event.create(false, &end));
  REQUIRE(device->stream.wait(stream, event));
  REQUIRE(device->copy(pinned, (char *)memory + offer.memory.offset, 1, stream));
  REQUIRE(device->event.record(end, stream));
  give_time();
  REQUIRE(device->event.query(event, &over));
  forked_require(self, !over, "the event is over before its time");
  REQUIRE(device->event.query(end, &over));
  forked_require(self, !over, "the stream did not wait");
  forked_barrier(self);
  REQUIRE(device->stream.finish(stream));
  forked_require(self, *(unsigned char *)pinned == 77, "byte %d", *(unsigned char *)pinned);
  REQUIRE(device->event.query(event, &over));
  forked_require(self, over, "the event is not over");
  REQUIRE(device->event.destroy(end));
  REQUIRE(device->event.destroy(event));
  REQUIRE(device->stream.destroy(stream));
  REQUIRE(device->memory.pinned_free(pinned));
  REQUIRE(device->ipc.close(memory));
}

static void stream_waits_for_one_of_another_process(forked *self) {
  void *memory = NULL, *value = NULL, *event = NULL, *stream = NULL;
  shared_event offer;
  if (!enter(self)) {
    return;
  }
  if (self->rank == 0) {
    REQUIRE(device->memory.get(100, &memory));
    REQUIRE(device->memory.pinned_get(4, &value));
    REQUIRE(device->stream.work_create(&stream));
    REQUIRE(device->event.create(true, &event));
    REQUIRE(device->ipc.get(memory, &offer.memory));
    REQUIRE(device->ipc.event_get(event, offer.event));
    release(value, 0);
    lcomm_device_number held = {LCOMM_DEVICE_AWAIT, value, 1};
    REQUIRE(device->stream.numbers(stream, &held, 1));
    REQUIRE(device->set(memory, 77, 100, stream));
    REQUIRE(device->event.record(event, stream));
    memcpy(self->shared, &offer, sizeof(offer));
  }
  forked_barrier(self);
  if (self->rank == 1) {
    wait_for_other(self);
  } else {
    forked_barrier(self);
    release(value, 1);
    REQUIRE(device->stream.finish(stream));
  }
  forked_barrier(self);
  if (self->rank == 0) {
    REQUIRE(device->event.destroy(event));
    REQUIRE(device->stream.destroy(stream));
    REQUIRE(device->memory.pinned_free(value));
    REQUIRE(device->memory.free(memory));
  }
  leave(self);
}

/* Memory that processes share, registered by both: a stream of one writes what a stream of the
 * other waits for, and no process does anything in between. */
static void streams_of_processes_wait_by_shared_numbers(forked *self) {
  enum { GATE, NUMBER, PASSED, BACK };
  if (!enter(self)) {
    return;
  }
  void *stream = NULL;
  uint32_t *shared = sharing_page;
  size_t size = (size_t)sysconf(_SC_PAGESIZE);
  REQUIRE(device->memory.pin(shared, size));
  forked_require(self, device->memory.pin(shared, size) != 0, "registered twice");
  forked_require(self, device->locate(shared).kind == LCOMM_MEMORY_PINNED, "of another kind");
  REQUIRE(device->stream.work_create(&stream));
  if (self->rank == 0) {
    release(&shared[NUMBER], 3);
  }
  forked_barrier(self);
  lcomm_device_gate gate = {.place = &shared[GATE],
                            .number = &shared[NUMBER],
                            .passed = &shared[PASSED],
                            .task = self->rank == 0 ? LCOMM_DEVICE_AWAIT : LCOMM_DEVICE_WRITE};
  lcomm_device_number back = {self->rank == 0 ? LCOMM_DEVICE_WRITE : LCOMM_DEVICE_AWAIT,
                              &shared[BACK], 5};
  REQUIRE(device->stream.gates(stream, &gate, 1));
  REQUIRE(device->stream.numbers(stream, &back, 1));
  REQUIRE(device->stream.finish(stream));
  forked_require(self, shared[GATE] == 3 && shared[BACK] == 5, "%u and %u", shared[GATE],
                 shared[BACK]);
  REQUIRE(device->stream.destroy(stream));
  REQUIRE(device->memory.unpin(shared));
  forked_require(self, device->memory.unpin(shared) != 0, "given back twice");
  forked_barrier(self);
  leave(self);
}

#define DEVICE_SHARING                                                                             \
  SHARED_TEST(memory_is_seen_and_written_by_another_process, 2),                                   \
      SHARED_TEST(pieces_of_an_allocation_have_its_number, 1),                                     \
      SHARED_TEST(memory_of_the_host_is_not_shared, 1),                                            \
      SHARED_TEST(stream_waits_for_one_of_another_process, 2),                                     \
      SHARED_TEST(streams_of_processes_wait_by_shared_numbers, 2)

#endif

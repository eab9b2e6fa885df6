/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* Offers of memory on devices that are lost on their way: those of the first calls are made again,
 * and what is heard of later no call opens, as a stream may wait for what its caller does next. */

#include "libcomm/engine/engine.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/operation.h"
#include "libcomm/engine/peer_memory.h"
#include "tests/engine/on_emulated_device.h"

enum { COUNT = 20000, OFFERED_AGAIN = 64 };

/* ------------------------------------------------------- a link that loses them */

static const lcomm_transport_table *before;
static lcomm_transport_table losing;
static atomic_int lost;
static atomic_bool arrives;

static void send_or_lose(lcomm_transport *transport, int peer, const void *message) {
  int32_t kind = 0;
  memcpy(&kind, message, sizeof(kind));
  if (kind == LCOMM_CONTROL_OFFER && !atomic_load(&arrives)) {
    atomic_fetch_add(&lost, 1);
  } else {
    before->control.send(transport, peer, message);
  }
}

/* Before anything is in flight. All ranks are of one node, so they have one transport. */
static void lose_offers(lcomm_comm *comm) {
  lcomm_transport *link = lcomm_comm_link(comm, (mpi_rank + 1) % mpi_size);
  atomic_store(&lost, 0);
  atomic_store(&arrives, false);
  before = link->table;
  losing = *before;
  losing.control.send = send_or_lose;
  link->table = &losing;
}

static void find_links_again(lcomm_comm *comm) {
  lcomm_comm_link(comm, (mpi_rank + 1) % mpi_size)->table = before;
}

/* ------------------------------------------------------------------------- sums */

/* The same sums on the host, and on devices in a stream that can be held. */
typedef struct sums {
  lcomm_comm *here, *there;
  float *buffer;
  uint32_t *number;
  void *stream;
  int calls;
} sums;

static float given[COUNT], wanted[COUNT], got[COUNT];

static sums begin(void) {
  sums it = {.here = make_comm("", 1), .there = make_driven("", 1, LCOMM_PROGRESS_CALLS)};
  it.buffer = on_device(sizeof(given));
  check(device->stream.work_create(&it.stream));
  check(device->memory.pinned_get(sizeof *it.number, (void **)&it.number));
  __atomic_store_n(it.number, 0, __ATOMIC_RELEASE);
  lose_offers(it.there);
  return it;
}

static void end(sums *it) {
  require(atomic_load(&lost) > 0, "no offer was lost");
  require_fine(NULL, lcomm_destroy(it->here));
  require_fine(it->there, lcomm_barrier(it->there));
  find_links_again(it->there);
  require_fine(NULL, lcomm_destroy(it->there));
  check(device->memory.pinned_free(it->number));
  check(device->stream.destroy(it->stream));
  check(device->memory.free(it->buffer));
}

static void put_sum(const sums *it) {
  require_fine(it->there, lcomm_allreduce_on_stream(it->there, it->buffer, it->buffer, COUNT,
                                                    LCOMM_FLOAT32, LCOMM_SUM, it->stream));
}

static void make_wanted(sums *it) {
  fill_gradient(given, COUNT, (uint64_t)(100 * ++it->calls + mpi_rank));
  memcpy(wanted, given, sizeof(given));
  require_fine(it->here,
               lcomm_allreduce(it->here, wanted, wanted, COUNT, LCOMM_FLOAT32, LCOMM_SUM));
  to_device(it->buffer, given, sizeof(given));
}

static void require_wanted(const sums *it) {
  from_device(got, it->buffer, sizeof(got));
  require(memcmp(got, wanted, sizeof(wanted)) == 0, "call %d: other bits than on the host",
          it->calls);
}

/* Until the run is there for the next call: another one would be made else. */
static void settle(const sums *it) {
  bool idle = false;
  while (!idle) {
    require_fine(it->there, lcomm_enter(it->there));
    idle = it->there->runs.played == 0;
    lcomm_exit(it->there);
    sched_yield();
  }
}

static void sum(sums *it) {
  make_wanted(it);
  put_sum(it);
  check(device->stream.finish(it->stream));
  require_wanted(it);
  settle(it);
}

/* On all ranks together. */
static uint64_t all_of(uint64_t mine) {
  uint64_t all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

static bool has_heard_of_memory(lcomm_comm *comm) {
  require_fine(comm, lcomm_enter(comm));
  bool has = comm->runs.peer_memory != NULL;
  lcomm_exit(comm);
  return has;
}

/* ------------------------------------------------------------------- properties */

static void offers_of_the_first_calls_are_made_again(void) {
  sums it = begin();
  for (int i = 0; i < LCOMM_OPENING_OPERATIONS; i++) {
    atomic_store(&arrives, i >= LCOMM_OPENING_OPERATIONS / 2);
    sum(&it);
  }
  sum(&it);
  sum(&it);
  require(all_of(it.there->runs.stayed) > 0, "no payload stayed where it was");
  end(&it);
}

/* A call that opened the memory would wait for its own stream, which goes on when it has
 * returned. It is not held beside a thread that gets and frees memory, which would wait for it, and
 * the call for that thread. */
static void what_is_heard_of_later_no_call_opens(void) {
  sums it = begin();
  for (int i = 0; i < LCOMM_OPENING_OPERATIONS; i++) {
    sum(&it);
  }
  atomic_store(&arrives, true);
  while (it.calls < OFFERED_AGAIN) {
    sum(&it);
  }
  require(all_of(has_heard_of_memory(it.there)) == (uint64_t)mpi_size, "no offer came");
  make_wanted(&it);
  lcomm_device_number held = {LCOMM_DEVICE_AWAIT, it.number, 1};
  check(getenv("EMULATED_CHURN") ? 0 : device->stream.numbers(it.stream, &held, 1));
  put_sum(&it);
  __atomic_store_n(it.number, 1, __ATOMIC_RELEASE);
  check(device->stream.finish(it.stream));
  require_wanted(&it);
  settle(&it);
  require(all_of(it.there->runs.stayed) == 0, "memory was opened");
  end(&it);
}

static const mpi_property properties[] = {
    PROPERTY(offers_of_the_first_calls_are_made_again),
    PROPERTY(what_is_heard_of_later_no_call_opens),
    PROPERTY(nothing_is_left_on_the_device),
};
RUN_PROPERTIES(pausing_device_main, properties)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_ENGINE_COUNTED_CALLS_H
#define LCOMM_TESTS_ENGINE_COUNTED_CALLS_H

/* Calls of CUDA that a rank has made on its emulated device, and those that were counted without
 * one. Included by one program each. */

#include "libcomm/engine/engine.h"
#include "libcomm/engine/tape_count.h"
#include "tests/engine/on_emulated_device.h"

typedef struct sum_case {
  const char *policy;
  uint64_t count;
  lcomm_dtype dtype;
  bool error_feedback;
} sum_case;

typedef lcomm_status (*counting)(const lcomm_tape_case *it, lcomm_tape_calls *calls);

static inline lcomm_tape_calls counted(counting function, const lcomm_comm *comm,
                                       const sum_case *it) {
  lcomm_tape_case of = {
      .request = {.count = it->count, .dtype = it->dtype, .error_feedback = it->error_feedback},
      .policy = &comm->settings.policy,
      .topo = &comm->topo,
      .rank = mpi_rank};
  lcomm_tape_calls calls = {0};
  require_fine(NULL, function(&of, &calls));
  return calls;
}

/* So far, by this rank. */
static inline lcomm_tape_calls made(void) {
  return (lcomm_tape_calls){
      .launches = emulated_calls(EMULATED_CALL_LAUNCH),
      .copies = emulated_calls(EMULATED_CALL_COPY) + emulated_calls(EMULATED_CALL_SET),
      .numbers =
          emulated_calls(EMULATED_CALL_STREAM_NUMBERS) + emulated_calls(EMULATED_CALL_STREAM_GATES),
      .events =
          emulated_calls(EMULATED_CALL_EVENT_RECORD) + emulated_calls(EMULATED_CALL_STREAM_WAIT)};
}

static inline bool is_as_counted(const sum_case *it, const lcomm_tape_calls *here,
                                 const lcomm_tape_calls *wanted) {
  lcomm_tape_calls rest = *wanted;
  if (strstr(it->policy, "topk")) { /* fills are launches or not */
    uint64_t done = here->launches + here->copies, most = wanted->launches + wanted->copies;
    rest.launches = here->launches;
    rest.copies = here->copies;
    if (done > most || done < most / 2) {
      return false;
    }
  }
  return here->launches == rest.launches && here->copies == rest.copies &&
         here->numbers == rest.numbers && here->events == rest.events;
}

static inline void require_as_counted(const sum_case *it, int nodes,
                                      const lcomm_tape_calls *wanted) {
  lcomm_tape_calls here = made();
  require(is_as_counted(it, &here, wanted) &&
              emulated_calls_enqueuing() == lcomm_tape_calls_all(&here),
          "'%s', %llu elements on %d nodes: %llu launches, %llu copies, %llu of numbers, %llu of "
          "events; %llu, %llu, %llu, %llu were counted",
          it->policy, (unsigned long long)it->count, nodes, (unsigned long long)here.launches,
          (unsigned long long)here.copies, (unsigned long long)here.numbers,
          (unsigned long long)here.events, (unsigned long long)wanted->launches,
          (unsigned long long)wanted->copies, (unsigned long long)wanted->numbers,
          (unsigned long long)wanted->events);
}

/* Sums until all ranks read all that they can where it is. `sum` returns when its own result is
 * there. */
static inline void open_all(lcomm_comm *comm, const sum_case *it, void (*sum)(void *owner),
                            void *owner) {
  enum { SUMS_MAX = 8 }; /* in which memory is opened, see peer_memory.h */
  uint64_t wanted = counted(lcomm_tape_count, comm, it).stay, here = 0;
  int is_open = 0;
  for (int i = 0; i < SUMS_MAX && !is_open; i++) {
    uint64_t before = comm->runs.stayed;
    sum(owner);
    require_fine(comm, lcomm_barrier(comm));
    await_idle_runs(comm);
    here = comm->runs.stayed - before;
    is_open = i > 0 && here == wanted;
    MPI_Allreduce(MPI_IN_PLACE, &is_open, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  require(is_open, "'%s', %llu elements: %llu payloads were read on devices, not %llu", it->policy,
          (unsigned long long)it->count, (unsigned long long)here, (unsigned long long)wanted);
}

static inline int one_device_main(int *argc, char ***argv, const mpi_property *properties,
                                  int count) {
  emulated_setup setup = {.devices = 1, .kernels = &lcomm_cuda_kernels_table};
  return emulated_device_main(argc, argv, &setup, properties, count);
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_ENGINE_TAPE_CALLS_H
#define LCOMM_TESTS_ENGINE_TAPE_CALLS_H

/* Calls in a stream that is held, on emulated devices. Every rank poses as a node, so that payloads
 * cross through the host and calls put all their work there themselves, as a tape. Included by one
 * program each. */

#include "libcomm/engine/engine.h"
#include "tests/engine/on_emulated_device.h"

#ifndef TAPE_CALLS_LARGEST
#define TAPE_CALLS_LARGEST 9000
#endif

enum { CALLS = 6, LARGEST = TAPE_CALLS_LARGEST };

/* Two of the calls have one shape. */
static inline uint64_t count_of(int call) {
  return (uint64_t)(LARGEST - 1000 * (call / 2));
}

static float sent[CALLS][LARGEST], wanted[CALLS][LARGEST];

/* What the same calls give on the host. */
static inline void make_wanted_of(const char *policy, int nodes) {
  lcomm_comm *comm = make_comm(policy, nodes);
  for (int i = 0; i < CALLS; i++) {
    fill_gradient(sent[i], count_of(i), (uint64_t)(10 * i + mpi_rank));
    memcpy(wanted[i], sent[i], sizeof(sent[i]));
    require_fine(
        comm, lcomm_allreduce(comm, wanted[i], wanted[i], count_of(i), LCOMM_FLOAT32, LCOMM_SUM));
  }
  require_fine(NULL, lcomm_destroy(comm));
}

static inline void make_wanted(const char *policy) {
  make_wanted_of(policy, mpi_size);
}

/* A stream that waits for a number, and buffers. What gets or frees memory waits for it, as it does
 * for all that is in streams: a run that is made, too. So calls are made before, in a stream that
 * goes on, and again in one that is held. */
typedef struct held {
  void *stream;
  uint32_t *number;
  float *buffers[CALLS], *results[CALLS];
} held;

static inline void begin_held(held *it) {
  void *number = NULL;
  check(device->stream.work_create(&it->stream));
  check(device->memory.pinned_get(sizeof *it->number, &number));
  it->number = number;
  __atomic_store_n(it->number, 0, __ATOMIC_RELEASE);
  for (int i = 0; i < CALLS; i++) {
    it->buffers[i] = on_device(sizeof(sent[i]));
    check(device->memory.pinned_get(sizeof(sent[i]), (void **)&it->results[i]));
    memcpy(it->results[i], sent[i], sizeof(sent[i]));
  }
}

/* Not beside a thread that gets and frees memory: it would wait for this stream, and the program,
 * in its next call of CUDA, for that thread. */
static inline void hold(const held *it) {
  lcomm_device_number task = {LCOMM_DEVICE_AWAIT, it->number, 1};
  check(getenv("EMULATED_CHURN") ? 0 : device->stream.numbers(it->stream, &task, 1));
}

static inline void let_go(const held *it) {
  __atomic_store_n(it->number, 1, __ATOMIC_RELEASE);
  check(device->stream.finish(it->stream));
}

static inline void free_held(held *it) {
  for (int i = 0; i < CALLS; i++) {
    check(device->memory.free(it->buffers[i]));
    check(device->memory.pinned_free(it->results[i]));
  }
  check(device->memory.pinned_free(it->number));
  check(device->stream.destroy(it->stream));
}

/* Data is made in the stream before a call, and taken out after it. */
static inline void sum_in_stream(lcomm_comm *comm, const held *it, int call) {
  size_t size = count_of(call) * sizeof(float);
  check(device->copy(it->buffers[call], it->results[call], size, it->stream));
  require_fine(comm,
               lcomm_allreduce_on_stream(comm, it->buffers[call], it->buffers[call], count_of(call),
                                         LCOMM_FLOAT32, LCOMM_SUM, it->stream));
  check(device->copy(it->results[call], it->buffers[call], size, it->stream));
}

/* Every `stride`-th call, in a stream that is not held, over on all ranks: their runs are there. */
static inline void sum_before(lcomm_comm *comm, const held *it, int stride) {
  for (int i = 0; i < CALLS; i += stride) {
    sum_in_stream(comm, it, i);
  }
  check(device->stream.finish(it->stream));
  require_fine(comm, lcomm_barrier(comm));
}

/* What the next call sums. */
static inline void restore(const held *it) {
  for (int i = 0; i < CALLS; i++) {
    memcpy(it->results[i], sent[i], sizeof(sent[i]));
  }
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_ENGINE_PAIR_GRAPHS_H
#define LCOMM_TESTS_ENGINE_PAIR_GRAPHS_H

/* A ring of ranks with their data on an emulated device. Included by one program each. */

#include "tests/engine/graph_launch.h"

enum { LONGEST = 700000 }; /* floats, more than two pieces */

typedef struct ring {
  lcomm_comm *comm;
  float *from, *to, *got; /* [LONGEST]: on the device, there too, on the host */
  void *stream;
  int left, right;
} ring;

static inline ring ring_begin(const char *policy, int nodes) {
  ring it = {.comm = make_driven(policy, nodes, LCOMM_PROGRESS_CALLS),
             .from = on_device(LONGEST * sizeof(float)),
             .to = on_device(LONGEST * sizeof(float)),
             .got = calloc(LONGEST, sizeof(float)),
             .left = (mpi_rank + mpi_size - 1) % mpi_size,
             .right = (mpi_rank + 1) % mpi_size};
  check(device->stream.create(&it.stream));
  return it;
}

static inline void ring_free(ring *it) {
  check(device->stream.destroy(it->stream));
  check(device->memory.free(it->from));
  check(device->memory.free(it->to));
  free(it->got);
}

static inline void ring_end(ring *it) {
  require_fine(NULL, lcomm_destroy(it->comm));
  ring_free(it);
}

/* Small integers, whose sums are exact. */
static inline float ring_value(int rank, int replay, uint64_t place) {
  return (float)(rank * 31 + replay * 7 + (int)(place % 251));
}

static inline void ring_fill(const ring *it, int replay) {
  for (uint64_t i = 0; i < LONGEST; i++) {
    it->got[i] = ring_value(mpi_rank, replay, i);
  }
  to_device(it->from, it->got, LONGEST * sizeof(float));
}

static inline void ring_require(const ring *it, int replay, uint64_t count) {
  from_device(it->got, it->to, LONGEST * sizeof(float));
  for (uint64_t i = 0; i < count; i++) {
    require(it->got[i] == ring_value(it->left, replay, i), "replay %d, element %llu of %llu",
            replay, (unsigned long long)i, (unsigned long long)count);
  }
}

static inline void ring_send(const ring *it, uint64_t count) {
  require_fine(it->comm, lcomm_send_on_stream(it->comm, it->from, count, LCOMM_FLOAT32, it->right,
                                              it->stream));
}

static inline void ring_receive(const ring *it, uint64_t count) {
  require_fine(it->comm, lcomm_receive_on_stream(it->comm, it->to, count, LCOMM_FLOAT32, it->left,
                                                 it->stream));
}

#endif

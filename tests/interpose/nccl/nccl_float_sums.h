/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_NCCL_FLOAT_SUMS_H
#define LCOMM_TESTS_NCCL_FLOAT_SUMS_H

/* Sums of floats that a policy may compress: what each rank gives, and what they have to be.
 * Included by one program each. */

#include <math.h>

#include "tests/interpose/nccl/nccl_world.h"

enum { SUM_COUNT = 5000 };

static inline float value_of(int rank, int i) {
  return (float)((i * 37 + rank * 11) % 1009) / 64;
}

static inline void put_floats(int *there, int rank, int count) {
  static float values[ROOM];
  for (int i = 0; i < count; i++) {
    values[i] = value_of(rank, i);
  }
  to_device(there, values, (size_t)count * sizeof(float));
}

/* `there`, when the stream has come so far, is the sum of elements first, first + 1, ... of `ranks`
 * ranks: to the bit, or within the bound of int8. Returns a hash of the bits. */
static inline uint64_t holds_sum(cudaStream_t stream, const int *there, int first, int count,
                                 int ranks, bool exact) {
  static float values[ROOM];
  uint64_t hash = 1469598103934665603u;
  int differ = 0;
  check(device->stream.finish(stream));
  from_device(values, there, (size_t)count * sizeof(float));
  for (int i = 0; i < count; i++) {
    float sum = 0;
    uint32_t bits;
    for (int rank = 0; rank < ranks; rank++) {
      sum += value_of(rank, first + i);
    }
    memcpy(&bits, &values[i], sizeof(bits));
    hash = (hash ^ bits) * 1099511628211u;
    float error = values[i] - sum, bound = 0.2f * (float)ranks;
    differ += error < 0 || error > 0;
    require(error < bound && error > -bound, "element %d: %g, not %g", i, (double)values[i],
            (double)sum);
  }
  require((differ == 0) == exact, "%d of %d elements differ from the exact ones", differ, count);
  return hash;
}

/* The values `there`, when the stream has come so far, are added to `sum`. */
static inline void add_from_device(double *sum, const int *there, int count, cudaStream_t stream) {
  static float values[ROOM];
  check(device->stream.finish(stream));
  from_device(values, there, (size_t)count * sizeof(float));
  for (int i = 0; i < count; i++) {
    sum[i] += (double)values[i];
  }
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_SPAN_CUH
#define LCOMM_KERNELS_CUDA_CUDA_SPAN_CUH

/* How a kernel iterates over arrays of equal length: in units of 16 bytes where all
 * arrays have the same alignment, and element by element over the rest, which is
 * everything when they have not. A tile is LCOMM_TILE_UNITS units, of which a thread takes
 * LCOMM_UNITS, a block apart from each other: so many loads are in flight before
 * the first is waited for, and neighbours read neighbouring memory. */

#include "kernels/cuda/cuda_grid.cuh"

enum {
  LCOMM_SPAN_THREADS = LCOMM_THREADS_MAX,
  LCOMM_UNIT_SIZE = 16,
  LCOMM_UNITS = 4,
  LCOMM_TILE_UNITS = LCOMM_UNITS * LCOMM_SPAN_THREADS
};

typedef struct lcomm_span {
  uint64_t head;  /* elements before the first unit */
  uint64_t units; /* in a row */
  uint64_t loose; /* elements before and behind the units */
} lcomm_span;

/* For n elements of `size` bytes: 4, 8 or 16 divided by one of them. */
static inline lcomm_span lcomm_span_of(const void *const *arrays, uint32_t count, uint32_t size,
                                       uint64_t n) {
  lcomm_span span = {0, 0, n};
  uint32_t phase = (uint32_t)((uintptr_t)arrays[0] % LCOMM_UNIT_SIZE);
  for (uint32_t i = 1; i < count; i++) {
    if ((uintptr_t)arrays[i] % LCOMM_UNIT_SIZE != phase) {
      return span;
    }
  }
  uint32_t head = (LCOMM_UNIT_SIZE - phase) % LCOMM_UNIT_SIZE / size;
  if (phase % size || n < head) {
    return span;
  }
  span.head = head;
  span.units = (n - head) / (LCOMM_UNIT_SIZE / size);
  span.loose = n - span.units * (LCOMM_UNIT_SIZE / size);
  return span;
}

static inline uint32_t lcomm_span_blocks(lcomm_span span) {
  uint64_t work = span.units > span.loose ? span.units : span.loose;
  uint64_t blocks = (work + LCOMM_TILE_UNITS - 1) / LCOMM_TILE_UNITS, most = 1u << 30;
  return (uint32_t)(blocks < most ? blocks : most);
}

/* for (uint64_t first = lcomm_span_first(); first < units; first += lcomm_span_step())
 *   units first, first + LCOMM_SPAN_THREADS, ... LCOMM_UNITS of them */
LCOMM_DEVICE uint64_t lcomm_span_first(void) {
  return (uint64_t)lcomm_block() * LCOMM_TILE_UNITS + lcomm_thread();
}

LCOMM_DEVICE uint64_t lcomm_span_step(void) {
  return (uint64_t)lcomm_blocks() * LCOMM_TILE_UNITS;
}

/* The same for the loose elements: a thread takes number j of them, and then
 * those a whole grid further. */
LCOMM_DEVICE uint64_t lcomm_loose_first(void) {
  return (uint64_t)lcomm_block() * LCOMM_SPAN_THREADS + lcomm_thread();
}

LCOMM_DEVICE uint64_t lcomm_loose_step(void) {
  return (uint64_t)lcomm_blocks() * LCOMM_SPAN_THREADS;
}

/* The index of loose element j. */
LCOMM_DEVICE uint64_t lcomm_loose_index(lcomm_span span, uint32_t size, uint64_t j) {
  return j < span.head ? j : j + span.units * (LCOMM_UNIT_SIZE / size);
}

/* Unit u, or zeros past the end. `units` is the address of unit 0. */
LCOMM_DEVICE lcomm_vec4 lcomm_unit_load(const uint8_t *units, uint64_t u, uint64_t count) {
  lcomm_vec4 none = {0, 0, 0, 0};
  return u < count ? lcomm_load4(units + LCOMM_UNIT_SIZE * u) : none;
}

LCOMM_DEVICE void lcomm_unit_store(uint8_t *units, uint64_t u, uint64_t count, lcomm_vec4 value) {
  if (u < count) {
    lcomm_store4(units + LCOMM_UNIT_SIZE * u, value);
  }
}

#endif

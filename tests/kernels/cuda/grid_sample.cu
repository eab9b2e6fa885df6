/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/kernels/cuda/grid_sample.h"

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_nan.cuh"

typedef struct sample_args {
  const uint32_t *source;
  uint32_t *result;
  uint64_t n;
} sample_args;

LCOMM_KERNEL(places, sample_args) {
  uint32_t i = lcomm_block() * lcomm_threads() + lcomm_thread();
  a.result[i] = 1000 * lcomm_block() + lcomm_thread() + lcomm_lane() + lcomm_warp();
}

extern "C" int grid_sample_places(uint32_t *result, uint32_t blocks, uint32_t threads,
                                  void *stream) {
  sample_args args = {NULL, result, 0};
  return LCOMM_LAUNCH(places, blocks, threads, stream, args);
}

LCOMM_KERNEL(sum_by_barriers, sample_args) {
  LCOMM_SHARED uint32_t partial[LCOMM_THREADS_MAX];
  uint32_t own = lcomm_thread(), width = 1;
  partial[own] = a.source[(uint64_t)lcomm_block() * lcomm_threads() + own];
  lcomm_sync_block();
  for (; width < lcomm_threads(); width *= 2) {
    if (own % (2 * width) == 0 && own + width < lcomm_threads()) {
      partial[own] += partial[own + width];
    }
    lcomm_sync_block();
  }
  if (own == 0) {
    a.result[lcomm_block()] = partial[0];
  }
}

extern "C" int grid_sample_sum(const uint32_t *source, uint32_t *result, uint32_t blocks,
                               uint32_t threads, void *stream) {
  sample_args args = {source, result, 0};
  return LCOMM_LAUNCH(sum_by_barriers, blocks, threads, stream, args);
}

LCOMM_KERNEL(sum_by_warps, sample_args) {
  LCOMM_SHARED uint32_t partial[LCOMM_THREADS_MAX / LCOMM_WARP];
  uint32_t sum = a.source[(uint64_t)lcomm_block() * lcomm_threads() + lcomm_thread()];
  for (uint32_t mask = LCOMM_WARP / 2; mask; mask /= 2) {
    sum += lcomm_shuffle_xor(sum, mask);
  }
  if (lcomm_lane() == 0) {
    partial[lcomm_warp()] = sum;
  }
  lcomm_sync_block();
  if (lcomm_thread() != 0) {
    return;
  }
  sum = 0;
  for (uint32_t w = 0; w < lcomm_threads() / LCOMM_WARP; w++) {
    sum += partial[w];
  }
  a.result[lcomm_block()] = sum;
}

extern "C" int grid_sample_sum_by_warps(const uint32_t *source, uint32_t *result, uint32_t blocks,
                                        uint32_t threads, void *stream) {
  sample_args args = {source, result, 0};
  return LCOMM_LAUNCH(sum_by_warps, blocks, threads, stream, args);
}

LCOMM_KERNEL(exchange, sample_args) {
  LCOMM_SHARED uint32_t seen[LCOMM_THREADS_MAX / LCOMM_WARP];
  uint32_t own = a.source[lcomm_thread()], *result = a.result + 5 * lcomm_thread();
  if (lcomm_lane() == 0) {
    seen[lcomm_warp()] = 0;
  }
  lcomm_sync_warp();
  lcomm_atomic_add(&seen[lcomm_warp()], 1);
  result[0] = lcomm_shuffle_xor(own, 5);
  result[1] = lcomm_shuffle_up(own, 3);
  result[2] = lcomm_shuffle(own, 7 * lcomm_lane() % LCOMM_WARP);
  result[3] = lcomm_ballot(own % 2 == 1);
  lcomm_sync_warp();
  result[4] = seen[lcomm_warp()];
}

extern "C" int grid_sample_exchange(const uint32_t *source, uint32_t *result, uint32_t threads,
                                    void *stream) {
  sample_args args = {source, result, 0};
  return LCOMM_LAUNCH(exchange, 1, threads, stream, args);
}

typedef struct atomics_args {
  const uint32_t *source;
  uint64_t n;
  uint32_t *counts;
  uint64_t *wide;
} atomics_args;

LCOMM_KERNEL(atomics, atomics_args) {
  uint64_t i = (uint64_t)lcomm_block() * lcomm_threads() + lcomm_thread();
  if (i >= a.n) {
    return;
  }
  lcomm_atomic_add(&a.counts[0], a.source[i]);
  lcomm_atomic_max(&a.counts[1], a.source[i]);
  lcomm_atomic_or(&a.counts[2], a.source[i]);
  lcomm_atomic_add64(a.wide, a.source[i]);
  lcomm_fence();
}

extern "C" int grid_sample_atomics(const uint32_t *source, uint64_t n, uint32_t *counts,
                                   uint64_t *wide, void *stream) {
  atomics_args args = {source, n, counts, wide};
  return LCOMM_LAUNCH(atomics, (uint32_t)((n + 63) / 64), 64, stream, args);
}

typedef struct copy_args {
  const uint8_t *source4, *source2;
  uint8_t *destination4, *destination2;
  uint64_t n;
} copy_args;

LCOMM_KERNEL(copy, copy_args) {
  for (uint64_t i = lcomm_thread(); i < a.n; i += lcomm_threads()) {
    if (i % 2) {
      lcomm_store4(a.destination4 + 16 * i, lcomm_load4(a.source4 + 16 * i));
      lcomm_store2(a.destination2 + 8 * i, lcomm_load2(a.source2 + 8 * i));
    } else {
      lcomm_store4_once(a.destination4 + 16 * i, lcomm_load4_once(a.source4 + 16 * i));
      lcomm_store2_once(a.destination2 + 8 * i, lcomm_load2_once(a.source2 + 8 * i));
    }
  }
}

extern "C" int grid_sample_copy(const void *source4, void *destination4, const void *source2,
                                void *destination2, uint64_t n, void *stream) {
  copy_args args = {(const uint8_t *)source4, (const uint8_t *)source2, (uint8_t *)destination4,
                    (uint8_t *)destination2, n};
  return LCOMM_LAUNCH(copy, 1, 32, stream, args);
}

LCOMM_KERNEL(look_into_shared, sample_args) {
  LCOMM_SHARED uint32_t number[1];
  if (lcomm_thread() == 0) {
    a.result[lcomm_block()] = number[0];
    number[0] = 77;
  }
}

extern "C" int grid_sample_shared(uint32_t *found, uint32_t blocks, void *stream) {
  sample_args args = {NULL, found, 0};
  return LCOMM_LAUNCH(look_into_shared, blocks, 32, stream, args);
}

extern "C" int grid_sample_set(void *memory, uint64_t size, void *stream) {
  return lcomm_cuda_set(memory, size, stream);
}

extern "C" int grid_sample_copy_in(void *device, const void *host, uint64_t size, void *stream) {
  return lcomm_cuda_copy_in(device, host, size, stream);
}

typedef struct nan_args {
  const float *a, *b;
  uint32_t *result;
  uint32_t n;
} nan_args;

LCOMM_KERNEL(nans, nan_args) {
  for (uint32_t i = lcomm_thread(); i < a.n; i += lcomm_threads()) {
    a.result[i] = lcomm_nan_f32(a.a[i], a.b[i]);
  }
}

extern "C" int grid_sample_nan(const float *a, const float *b, uint32_t *result, uint32_t n,
                               void *stream) {
  nan_args args = {a, b, result, n};
  return LCOMM_LAUNCH(nans, 1, 64, stream, args);
}

typedef struct nan_f64_args {
  const double *a, *b;
  uint64_t *result;
  uint32_t n;
} nan_f64_args;

LCOMM_KERNEL(nans_f64, nan_f64_args) {
  for (uint32_t i = lcomm_thread(); i < a.n; i += lcomm_threads()) {
    a.result[i] = lcomm_nan_f64(a.a[i], a.b[i]);
  }
}

extern "C" int grid_sample_nan_f64(const double *a, const double *b, uint64_t *result, uint32_t n,
                                   void *stream) {
  nan_f64_args args = {a, b, result, n};
  return LCOMM_LAUNCH(nans_f64, 1, 64, stream, args);
}

/* ----------------------------------------------------------------- mistakes */

LCOMM_KERNEL(lacks_barrier, sample_args) {
  LCOMM_SHARED uint32_t numbers[64];
  uint32_t own = lcomm_thread();
  numbers[own] = a.source[own];
  a.result[own] = own ? numbers[own - 1] : 0;
}

extern "C" int grid_sample_lacks_barrier(const uint32_t *source, uint32_t *result, void *stream) {
  sample_args args = {source, result, 0};
  return LCOMM_LAUNCH(lacks_barrier, 1, 64, stream, args);
}

LCOMM_KERNEL(returns_early, sample_args) {
  if (lcomm_thread() % 64 >= 32) {
    return;
  }
  lcomm_sync_block();
  a.result[lcomm_thread()] = 1;
}

LCOMM_KERNEL(other_barrier, sample_args) {
  if (lcomm_thread() < 32) {
    lcomm_sync_block();
  } else {
    lcomm_sync_block();
  }
  a.result[lcomm_thread()] = 1;
}

LCOMM_KERNEL(other_shuffle, sample_args) {
  uint32_t own = lcomm_thread();
  a.result[own] = own == 9 ? lcomm_ballot(1) : lcomm_shuffle_xor(own, 1);
}

LCOMM_KERNEL(barrier_or_shuffle, sample_args) {
  uint32_t own = lcomm_thread();
  if (own < 33) {
    lcomm_sync_block();
  } else {
    own = lcomm_shuffle_up(own, 1);
  }
  a.result[lcomm_thread()] = own;
}

LCOMM_KERNEL(misaligned, sample_args) {
  lcomm_vec4 value = {1, 2, 3, 4};
  lcomm_store4(a.result + 1 + 4 * lcomm_thread(), value);
}

LCOMM_KERNEL(beyond_shared, sample_args) {
  LCOMM_SHARED uint32_t numbers[32];
  numbers[lcomm_thread() + a.n] = 1;
  lcomm_sync_block();
  a.result[lcomm_thread()] = numbers[lcomm_thread()];
}

extern "C" int grid_sample_make(grid_sample_mistake mistake, uint32_t *memory, void *stream) {
  sample_args args = {NULL, memory, 1};
  switch (mistake) {
  case GRID_SAMPLE_RETURNS_EARLY:
    return LCOMM_LAUNCH(returns_early, 3, 128, stream, args);
  case GRID_SAMPLE_OTHER_BARRIER:
    return LCOMM_LAUNCH(other_barrier, 1, 64, stream, args);
  case GRID_SAMPLE_OTHER_SHUFFLE:
    return LCOMM_LAUNCH(other_shuffle, 1, 32, stream, args);
  case GRID_SAMPLE_BARRIER_OR_SHUFFLE:
    return LCOMM_LAUNCH(barrier_or_shuffle, 1, 64, stream, args);
  case GRID_SAMPLE_MISALIGNED:
    return LCOMM_LAUNCH(misaligned, 1, 32, stream, args);
  case GRID_SAMPLE_BEYOND_SHARED:
    return LCOMM_LAUNCH(beyond_shared, 1, 32, stream, args);
  default:
    return 1;
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_GRID_CUH
#define LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_GRID_CUH

/* The grid of kernels/cuda/cuda_grid.cuh on a processor: the same names, see there.
 * Kernels are compiled as C++ with -include emulated_hardware.cuh. */

#define LCOMM_KERNELS_CUDA_CUDA_GRID_CUH /* cuda_grid.cuh is empty from here on */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/support/emulated/emulated_blocks.h"
#include "tests/support/emulated/emulated_shared.h"

#define LCOMM_KERNEL(name, args_type)                                                              \
  static void name(const args_type &a);                                                            \
  static void enter_##name(const void *args) { name(*(const args_type *)args); }                   \
  static inline int launch_##name(uint32_t blocks, uint32_t threads, void *stream,                 \
                                  args_type args) {                                                \
    return blocks == 0 ? 0                                                                         \
                       : lcomm_emulated.launch(enter_##name, &args, sizeof args, blocks, threads,  \
                                               stream, #name);                                     \
  }                                                                                                \
  static void name(const args_type &a)

#define LCOMM_LAUNCH(name, blocks, threads, stream, args)                                          \
  launch_##name(blocks, threads, stream, args)

#define LCOMM_DEVICE static inline __attribute__((always_inline, unused))

static inline int lcomm_cuda_set(void *memory, size_t size, void *stream) {
  return lcomm_emulated.set(memory, size, stream);
}

static inline int lcomm_cuda_copy_in(void *device, const void *host, size_t size, void *stream) {
  return lcomm_emulated.copy_in(device, host, size, stream);
}

/* ------------------------------------------------------------ who is asking */

LCOMM_DEVICE uint32_t lcomm_thread(void) {
  return lcomm_emulated_here.thread;
}

LCOMM_DEVICE uint32_t lcomm_threads(void) {
  return lcomm_emulated_here.threads;
}

LCOMM_DEVICE uint32_t lcomm_block(void) {
  return lcomm_emulated_here.block;
}

LCOMM_DEVICE uint32_t lcomm_blocks(void) {
  return lcomm_emulated_here.blocks;
}

LCOMM_DEVICE uint32_t lcomm_lane(void) {
  return lcomm_emulated_here.thread % LCOMM_WARP;
}

LCOMM_DEVICE uint32_t lcomm_warp(void) {
  return lcomm_emulated_here.thread / LCOMM_WARP;
}

/* ----------------------------------------------------------------- together */

/* Macros, to know the place in the source. */
#define LCOMM_SITE_TEXT(line) #line
#define LCOMM_SITE_LINE(line) LCOMM_SITE_TEXT(line)
#define LCOMM_SITE __FILE__ ":" LCOMM_SITE_LINE(__LINE__)

#define lcomm_sync_block() ((void)lcomm_emulated_meet(LCOMM_MEET_BLOCK, 0, 0, LCOMM_SITE))
#define lcomm_sync_warp() ((void)lcomm_emulated_meet(LCOMM_MEET_WARP, 0, 0, LCOMM_SITE))
#define lcomm_shuffle_xor(value, mask) lcomm_emulated_meet(LCOMM_MEET_XOR, value, mask, LCOMM_SITE)
#define lcomm_shuffle_up(value, distance)                                                          \
  lcomm_emulated_meet(LCOMM_MEET_UP, value, distance, LCOMM_SITE)
#define lcomm_shuffle(value, lane) lcomm_emulated_meet(LCOMM_MEET_LANE, value, lane, LCOMM_SITE)
#define lcomm_ballot(condition)                                                                    \
  lcomm_emulated_meet(LCOMM_MEET_BALLOT, (condition) != 0, 0, LCOMM_SITE)

/* ------------------------------------------------------------------ atomics */

/* Atomic for the threads of the system that run grids side by side, too. */

LCOMM_DEVICE uint32_t lcomm_atomic_add(uint32_t *place, uint32_t value) {
  return __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
}

LCOMM_DEVICE uint64_t lcomm_atomic_add64(uint64_t *place, uint64_t value) {
  return __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
}

LCOMM_DEVICE uint32_t lcomm_atomic_max(uint32_t *place, uint32_t value) {
  uint32_t was = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (was < value && !__atomic_compare_exchange_n(place, &was, value, true, __ATOMIC_RELAXED,
                                                     __ATOMIC_RELAXED)) {
    ;
  }
  return was;
}

LCOMM_DEVICE uint32_t lcomm_atomic_or(uint32_t *place, uint32_t value) {
  return __atomic_fetch_or(place, value, __ATOMIC_RELAXED);
}

/* Threads take turns at other places only. */
LCOMM_DEVICE void lcomm_fence(void) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* ------------------------------------------------------------------- memory */

typedef struct alignas(16) lcomm_vec4 {
  uint32_t x, y, z, w;
} lcomm_vec4;

typedef struct alignas(8) lcomm_vec2 {
  uint32_t x, y;
} lcomm_vec2;

template <typename vector>
LCOMM_DEVICE vector lcomm_emulated_load(const void *p, const char *site) {
  vector value;
  if ((uintptr_t)p % sizeof value) {
    lcomm_emulated_misaligned(sizeof value, site);
  }
  memcpy(&value, p, sizeof value);
  return value;
}

template <typename vector>
LCOMM_DEVICE void lcomm_emulated_store(void *p, vector value, const char *site) {
  if ((uintptr_t)p % sizeof value) {
    lcomm_emulated_misaligned(sizeof value, site);
  }
  memcpy(p, &value, sizeof value);
}

#define lcomm_load4(p) lcomm_emulated_load<lcomm_vec4>(p, LCOMM_SITE)
#define lcomm_load4_once(p) lcomm_emulated_load<lcomm_vec4>(p, LCOMM_SITE)
#define lcomm_store4(p, value) lcomm_emulated_store<lcomm_vec4>(p, value, LCOMM_SITE)
#define lcomm_store4_once(p, value) lcomm_emulated_store<lcomm_vec4>(p, value, LCOMM_SITE)
#define lcomm_load2(p) lcomm_emulated_load<lcomm_vec2>(p, LCOMM_SITE)
#define lcomm_load2_once(p) lcomm_emulated_load<lcomm_vec2>(p, LCOMM_SITE)
#define lcomm_store2(p, value) lcomm_emulated_store<lcomm_vec2>(p, value, LCOMM_SITE)
#define lcomm_store2_once(p, value) lcomm_emulated_store<lcomm_vec2>(p, value, LCOMM_SITE)

#endif

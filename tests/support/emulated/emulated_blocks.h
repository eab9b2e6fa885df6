/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_BLOCKS_H
#define LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_BLOCKS_H

/* A grid on a processor: blocks run one after the other in the order of their
 * indices, the threads of a block in turn, each until it has to wait for others.
 * A thread that never waits is no more than a call. What cannot work on a device
 * ends the process with a sentence that says which kernel, block and threads. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LCOMM_WARP = 32, LCOMM_THREADS_MAX = 256 };

typedef void lcomm_emulated_kernel(const void *args);

/* The thread that runs now. */
typedef struct lcomm_emulated_locate {
  uint32_t thread, threads, block, blocks;
} lcomm_emulated_locate;

extern __thread lcomm_emulated_locate lcomm_emulated_here;

/* Run a whole grid on the calling thread of the system; returns 0 when it is
 * done. Several may call it at the same time. */
int lcomm_emulated_run(lcomm_emulated_kernel *kernel, const void *args, uint32_t blocks,
                       uint32_t threads, const char *name);

/* What kernels and launchers ask of a device goes through here. At first, all of
 * it is done at once by the caller and `stream` does not matter; an emulated
 * device with streams puts its own functions here, which copy `args` (and what
 * `host` points to) and do the work later, with lcomm_emulated_run(). All
 * return 0 or the number of a cudaError_t. set writes zeros. */
typedef struct lcomm_emulated_hooks {
  int (*launch)(lcomm_emulated_kernel *kernel, const void *args, size_t args_size, uint32_t blocks,
                uint32_t threads, void *stream, const char *name);
  int (*set)(void *memory, size_t size, void *stream);
  int (*copy_in)(void *device, const void *host, size_t size, void *stream);
} lcomm_emulated_hooks;

extern lcomm_emulated_hooks lcomm_emulated;

/* How threads take turns: 0, by index; otherwise in an order drawn from this
 * number, anew for each block. A kernel that lacks a barrier may be right in one
 * order only. */
extern uint64_t lcomm_emulated_order;

/* ------------------------------------------------------- for emulated_grid.cuh only */

typedef enum lcomm_emulated_meeting {
  LCOMM_MEET_BLOCK,
  LCOMM_MEET_WARP,
  LCOMM_MEET_XOR,
  LCOMM_MEET_UP,
  LCOMM_MEET_LANE,
  LCOMM_MEET_BALLOT
} lcomm_emulated_meeting;

/* Wait for the other threads of the block or the warp, and exchange values. `site`
 * is the place in the source, which must be the same for all. */
uint32_t lcomm_emulated_meet(lcomm_emulated_meeting meeting, uint32_t value, uint32_t selector,
                             const char *site);

/* End the process because of a vector access. */
void lcomm_emulated_misaligned(size_t size, const char *site);

#ifdef __cplusplus
}
#endif

#endif

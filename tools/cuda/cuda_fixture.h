/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CUDA_CUDA_FIXTURE_H
#define LCOMM_TOOLS_CUDA_CUDA_FIXTURE_H

/* What all measurements of cuda_bench share: a device, a stream, memory, and
 * values whose like the host can make again at any place. The device is seen
 * through its table only, so any table will do. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/device/device.h"

enum {
  LCOMM_GPU_PEERS = 8,
  LCOMM_GPU_PEER_SHIFT = 4096, /* peer p begins at value p * shift of the source */
  LCOMM_GPU_WHY_MAX = 512
};

#define LCOMM_GPU_COUNT_MAX ((uint64_t)1 << 31) /* top-k counts in 32 bits */

typedef struct lcomm_gpu_fixture {
  const lcomm_device_table *table;
  int device;
  lcomm_device_facts facts;
  void *stream;
  uint64_t count; /* values */

  /* Device memory. Peers' payloads begin at multiples of code_stride. */
  float *source; /* count + LCOMM_GPU_PEERS * LCOMM_GPU_PEER_SHIFT values */
  float *residual, *destination;
  uint8_t *code;
  size_t code_stride;
  uint8_t *copy_source, *copy_destination;
  size_t copy_size;
  uint64_t *pinned; /* one number that host and device write and read */

  char why[LCOMM_GPU_WHY_MAX]; /* what went wrong, a sentence */
} lcomm_gpu_fixture;

/* Take memory for `count` values and for copies of copy_size bytes, and fill the
 * source. false: `why` says what to do; close it all the same. */
bool lcomm_gpu_fixture_open(lcomm_gpu_fixture *fixture, const lcomm_device_table *table, int device,
                            uint64_t count, size_t copy_size);
void lcomm_gpu_fixture_close(lcomm_gpu_fixture *fixture);

/* Values [first, first + n) of the source, made by the host. */
void lcomm_gpu_fixture_values(const lcomm_gpu_fixture *fixture, uint64_t first, uint64_t n,
                              float *values);

/* Is `error` 0? Else `why` becomes a sentence about what was being done. */
bool lcomm_gpu_good(lcomm_gpu_fixture *fixture, int error, const char *doing);

/* Copy, set and wait until it is done. false as lcomm_gpu_good(). */
bool lcomm_gpu_copy(lcomm_gpu_fixture *fixture, void *destination, const void *source, size_t size);
bool lcomm_gpu_set(lcomm_gpu_fixture *fixture, void *memory, int byte, size_t size);
bool lcomm_gpu_finish(lcomm_gpu_fixture *fixture);

#endif

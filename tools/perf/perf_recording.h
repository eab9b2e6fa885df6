/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PERF_RECORDING_H
#define LCOMM_TOOLS_PERF_PERF_RECORDING_H

#include <stddef.h>
#include <stdint.h>

/* Numbers from a file instead of built-in ones: real gradients. */
typedef struct lcomm_perf_recording {
  float *values; /* owned; NULL: none */
  uint64_t count;
} lcomm_perf_recording;

/* Read raw little-endian float32 values. A %d in the path stands for a number
 * of several files: 0 to N-1, however many there are; rank r reads r % N.
 * Returns 0 and one sentence in `error` if there is no such file or no value in it. */
int lcomm_perf_recording_load(lcomm_perf_recording *recording, const char *path, int rank,
                              char *error, size_t error_size);
void lcomm_perf_recording_free(lcomm_perf_recording *recording);

/* Fill a buffer, from the start again as often as it takes. */
void lcomm_perf_recording_fill(const lcomm_perf_recording *recording, float *buffer,
                               uint64_t count);

#endif

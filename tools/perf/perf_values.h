/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PERF_VALUES_H
#define LCOMM_TOOLS_PERF_PERF_VALUES_H

#include <stdint.h>

#include "tools/common/tool_units.h"
#include "tools/perf/perf_options.h"

/* Values on the command line. All return false, and change nothing, for a text
 * that is no such value. */

/* A number of bytes such as 64K, powers of 1024, up to 2^50. */
bool lcomm_perf_read_size(const char *text, uint64_t *size_bytes);

/* A whole number from `least`. */
enum { LCOMM_PERF_NUMBER_MAX = 1000000 };
bool lcomm_perf_read_whole(const char *text, int least, int *number);

/* sum, avg, min, max or all. */
bool lcomm_perf_read_ops(const char *text, lcomm_perf_options *options);

/* A type by the library's name or NCCL's (float, half, double), or all. */
bool lcomm_perf_read_dtypes(const char *text, lcomm_perf_options *options);

/* A time such as 5ms, of up to 1000 s. */
bool lcomm_perf_read_time(const char *text, double *seconds);

/* How long to compute: 0.8 of the operation's time, or 20ms. */
bool lcomm_perf_read_overlap(const char *text, lcomm_perf_computation *computation);

/* A rank, or all. */
bool lcomm_perf_read_root(const char *text, int *root);

#endif

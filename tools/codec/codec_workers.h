/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_WORKERS_H
#define LCOMM_TOOLS_CODEC_CODEC_WORKERS_H

/* What each thread of a timing works on: buffers of its own, which it was the
 * first to touch, so that they lie in memory close to it. */

#include "tools/codec/codec_dataset.h"
#include "tools/codec/codec_owners.h"
#include "tools/codec/codec_under_test.h"
#include "tools/common/tool_timing.h"

typedef struct lcomm_worker {
  size_t count; /* values of each buffer */
  float *source, *destination, *scratch;
  lcomm_under_test *tested; /* NULL: no codec yet */
  lcomm_owners *owners;     /* instead of it, where vectors have several; NULL: one */
  lcomm_status status;      /* of what went wrong in a timing, OK at first */
  const void *task;         /* for the runner of a timing; the same for all workers */
  void *own;                /* for it too, one for each worker */
} lcomm_worker;

typedef struct lcomm_workers {
  size_t threads, repetitions;
  uint64_t size_bytes;  /* of float32 in a buffer */
  uint32_t owners;      /* of a vector, for sparse codecs */
  lcomm_worker *worker; /* owned, one for each thread */
  void **pointers;      /* to them, for a timing */
} lcomm_workers;

/* Buffers with the values of the dataset. MEMORY, SYSTEM; nothing is left to
 * destroy then. */
lcomm_status lcomm_workers_create(const lcomm_bench_options *options, const lcomm_dataset *dataset,
                                  uint64_t size_bytes, lcomm_workers *workers);
void lcomm_workers_destroy(lcomm_workers *workers);

/* Give every worker a codec under test of this codec, after taking away the one it has
 * (codec NULL: only that). Statuses of lcomm_under_test_create. */
lcomm_status lcomm_workers_set_codec(lcomm_workers *workers, const lcomm_bench_codec *codec);

/* Time `variants` variants of `task` in turn. seconds has room for repetitions * variants
 * numbers; *timing is what it takes to read them. Statuses of tool_timing_run, or
 * that of a worker. */
lcomm_status lcomm_workers_time(lcomm_workers *workers, const void *task, tool_timing_runner run,
                                size_t variants, tool_timing *timing, double *seconds);

/* Bytes / 1e9 of float32 that all workers hold together. */
double lcomm_workers_gb(const lcomm_workers *workers);

#endif

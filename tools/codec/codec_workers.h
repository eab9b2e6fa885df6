/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_WORKERS_H
#define LCOMM_TOOLS_CODEC_CODEC_WORKERS_H

/* What each thread of a race works on: buffers of its own, which it was the
 * first to touch, so that they lie in memory close to it. */

#include "tools/codec/codec_dataset.h"
#include "tools/codec/codec_under_test.h"
#include "tools/common/tool_timing.h"

typedef struct lcomm_lane {
  size_t count; /* values of each buffer */
  float *source, *destination, *scratch;
  lcomm_subject *subject; /* NULL: no codec yet */
  lcomm_status status;    /* of what went wrong in a race, OK at first */
  const void *task;       /* for the runner of a race; the same for all lanes */
  void *own;              /* for it too, one for each lane */
} lcomm_lane;

typedef struct lcomm_lanes {
  size_t threads, repetitions;
  uint64_t size_bytes; /* of float32 in a buffer */
  lcomm_lane *lane;    /* owned, one for each thread */
  void **pointers;     /* to them, for a race */
} lcomm_lanes;

/* Buffers with the values of the dataset. MEMORY, SYSTEM; nothing is left to
 * destroy then. */
lcomm_status lcomm_lanes_create(const lcomm_bench_options *options, const lcomm_dataset *dataset,
                                uint64_t size_bytes, lcomm_lanes *lanes);
void lcomm_lanes_destroy(lcomm_lanes *lanes);

/* Give every lane a subject of this codec, after taking away the one it has
 * (codec NULL: only that). Statuses of lcomm_subject_create. */
lcomm_status lcomm_lanes_set_codec(lcomm_lanes *lanes, const lcomm_bench_codec *codec);

typedef void (*lcomm_lane_runner)(void *lane, size_t rival);

/* Race `rivals` ways at `task`. seconds has room for repetitions * rivals
 * numbers; *race is what it takes to read them. Statuses of lcomm_race_run, or
 * that of a lane. */
lcomm_status lcomm_lanes_race(lcomm_lanes *lanes, const void *task, lcomm_lane_runner run,
                              size_t rivals, lcomm_race *race, double *seconds);

/* Bytes / 1e9 of float32 that all lanes hold together. */
double lcomm_lanes_gb(const lcomm_lanes *lanes);

#endif

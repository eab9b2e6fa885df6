/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_STREAM_STREAM_CASE_H
#define LCOMM_TOOLS_STREAM_STREAM_CASE_H

/* What is measured of sums in order with a stream. */

#include "libcomm.h"
#include "tools/common/tool_timing.h"
#include "tools/stream/stream_graphs.h"
#include "tools/stream/stream_load.h"
#include "tools/stream/stream_options.h"

enum { STREAM_WHY_MAX = 512, STREAM_CASES_MAX = 16 };

/* A rank, its device, and where it sums. */
typedef struct stream_world {
  const stream_options *options;
  const lcomm_device_table *device;
  lcomm_comm *comm;
  void *stream, *compute; /* of sums; of other work */
  const stream_load *load;
  const char *no_load; /* why load is NULL */
  const stream_graphs *graphs;
  const char *no_graphs; /* why graphs are NULL */
  double *times;         /* room for options->samples */
} stream_world;

typedef struct stream_case stream_case;

typedef struct stream_result {
  const stream_case *what;
  tool_spread value; /* in the case's unit */
  bool measured, is_wrong;
  char why[STREAM_WHY_MAX]; /* not measured, or wrong */
} stream_result;

struct stream_case {
  const char *name, *unit;
  double target; /* 0: none */
  bool is_least; /* the target is the least value, not the greatest */
  uint64_t count;
  void (*run)(stream_world *world, stream_result *result);
  bool needs_load;
};

extern const stream_case stream_cases[];
extern const size_t stream_case_count;

/* Is it asked for? */
bool stream_case_is_wanted(const stream_case *what, const stream_options *options);

/* Collective. */
void stream_case_run(stream_world *world, const stream_case *what, stream_result *result);
bool stream_case_met(const stream_result *result);

#endif

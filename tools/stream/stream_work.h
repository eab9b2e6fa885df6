/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_STREAM_STREAM_WORK_H
#define LCOMM_TOOLS_STREAM_STREAM_WORK_H

/* What a case works on, and what several cases do with it. What is false has put its sentence into
 * the result. */

#include "tools/stream/stream_case.h"

typedef struct stream_work {
  stream_world *world;
  stream_result *result;
  uint64_t count;
  float *send, *receive;    /* on the device */
  void *graph, *executable; /* of cases that replay graphs, else NULL */
} stream_work;

stream_work stream_work_of(stream_world *world, stream_result *result);

/* All values that are sent are one, so that every sum is the number of ranks; what is received is
 * no number before the first sum. */
bool stream_work_begin(stream_work *w);
void stream_work_end(stream_work *w);

/* Always false. */
__attribute__((format(printf, 3, 4))) bool stream_fail(stream_result *result, bool is_wrong,
                                                       const char *format, ...);
/* What the device, or the library, has returned. */
bool stream_is_fine(const stream_work *w, int error);
bool stream_is_made(const stream_work *w, lcomm_status status);

bool stream_put_sum(const stream_work *w);
bool stream_finish(const stream_work *w, void *stream);
bool stream_meet(const stream_work *w); /* so that a sum begins on all ranks at once */
bool stream_is_right(const stream_work *w);

/* The case's samples of what `run` takes, in units of so many seconds. Two that do not count come
 * first: the first makes what all share. */
typedef bool stream_timed(const stream_work *w, double *seconds);
bool stream_measure(stream_work *w, stream_timed *run, double unit);

#endif

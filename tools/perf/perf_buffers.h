/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PERF_BUFFERS_H
#define LCOMM_TOOLS_PERF_PERF_BUFFERS_H

#include "tools/perf/perf_collective.h"
#include "tools/perf/perf_pattern.h"
#include "tools/perf/perf_recording.h"

/* What a rank sends: values of a file, or built-in ones. */
typedef struct lcomm_perf_input {
  lcomm_perf_pattern pattern;
  const lcomm_perf_recording *recording; /* empty: the pattern */
  int rank;
} lcomm_perf_input;

/* The memory of one call, several times over: a sum in place spoils its input,
 * so each operation of a batch has a slot of its own, filled beforehand. */
typedef struct lcomm_perf_buffers {
  const lcomm_perf_call *call; /* not owned */
  lcomm_perf_input input;
  char *memory; /* owned; of libcomm when the call says so */
  char *copy;   /* owned: the input, to refill from; NULL: it is made anew */
  size_t send_bytes;
  size_t area_bytes; /* of one buffer of a slot; in place it has one, else two */
  size_t slot_bytes;
  int slots;
} lcomm_perf_buffers;

/* Make `slots` slots (fewer if they were large) and fill them. Returns 0 if
 * there is no memory. */
int lcomm_perf_buffers_make(lcomm_perf_buffers *buffers, const lcomm_perf_call *call,
                            const lcomm_perf_input *input, int slots);
void lcomm_perf_buffers_free(lcomm_perf_buffers *buffers);

lcomm_perf_place lcomm_perf_buffers_place(const lcomm_perf_buffers *buffers, int slot);

/* Bring back the input of a slot. */
void lcomm_perf_buffers_refill(const lcomm_perf_buffers *buffers, int slot);

/* The same, and wipe results of earlier calls out. */
void lcomm_perf_buffers_renew(const lcomm_perf_buffers *buffers, int slot);

#endif

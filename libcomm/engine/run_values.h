/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_RUN_VALUES_H
#define LCOMM_ENGINE_RUN_VALUES_H

/* What a vector holds, for an observer on the host. Of a device it is copied, and the caller waits
 * for that: for what is in its stream, and for streams of the program that this one follows. */

#include "libcomm/engine/exec.h"

typedef struct lcomm_run_values {
  lcomm_run *run;
  const void *vector;
  size_t size;
  void *copy;          /* the caller frees it */
  lcomm_status status; /* of the communicator, where it could not be copied */
} lcomm_run_values;

/* Not those of a call that is put into a graph, nor of one that goes step by step on a device: who
 * moves messages would wait. */
bool lcomm_run_has_values(const lcomm_run *run);

/* Between lcomm_run_enter and lcomm_run_leave. NULL: MEMORY, or status says what failed. */
const void *lcomm_run_values_get(void *values);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_FEEDBACK_EF_MEMORY_H
#define LCOMM_FEEDBACK_EF_MEMORY_H

/* Arrays of float32 that outlive steps: residuals, momentum, what is carried. Kernels
 * of a device work on them, and the host saves and loads them, so those of a device
 * are managed memory. CUDA may wait for all streams, and so for messages, before it gives or takes
 * that: the caller has entered `comm`, and gives up its turn meanwhile (device_turn.h). */

#include <stdbool.h>

#include "libcomm/engine/engine.h"
#include "libcomm/engine/feedback_state.h"

/* `count` zeros at `location`; NULL when memory is short. */
float *lcomm_ef_memory_get(lcomm_comm *comm, lcomm_memory_location location, uint64_t count);

/* The same with `count` values of another array; *copy is NULL where there is nothing to copy.
 * False when memory is short. */
bool lcomm_ef_memory_copy(lcomm_comm *comm, lcomm_memory_location location, const float *from,
                          uint64_t count, float **copy);

void lcomm_ef_memory_free(lcomm_comm *comm, lcomm_memory_location location,
                          float *floats); /* NULL ok */

/* The arrays of a pair; it is empty then. */
void lcomm_ef_array_free(lcomm_comm *comm, lcomm_memory_location location, lcomm_ef_array *array);

/* Make the second array of a pair that holds `count` values, unless it is there or there is no
 * first one. False when memory is short. */
bool lcomm_ef_array_double(lcomm_comm *comm, lcomm_memory_location location, uint64_t count,
                           lcomm_ef_array *array);

/* Give the second one back: nothing is undone any more. */
void lcomm_ef_array_single(lcomm_comm *comm, lcomm_memory_location location, lcomm_ef_array *array);

/* Change their roles, where there are two. */
void lcomm_ef_array_turn(lcomm_ef_array *array);

#endif

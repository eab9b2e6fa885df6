/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_FEEDBACK_EF_MEMORY_H
#define LCOMM_FEEDBACK_EF_MEMORY_H

/* Arrays of float32 that outlive steps: residuals, momentum, what is carried. Kernels
 * of a device work on them, and the host saves and loads them, so those of a device
 * are managed memory. */

#include <stdbool.h>
#include <stdint.h>

/* `count` zeros at `place` (lcomm_plan_request.place); NULL when memory is short. */
float *lcomm_ef_memory_get(int place, uint64_t count);

/* The same with `count` values of another array; *copy is NULL where there is nothing to copy.
 * False when memory is short. */
bool lcomm_ef_memory_copy(int place, const float *from, uint64_t count, float **copy);

void lcomm_ef_memory_free(int place, float *floats); /* NULL ok */

#endif

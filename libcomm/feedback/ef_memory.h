/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_FEEDBACK_EF_MEMORY_H
#define LCOMM_FEEDBACK_EF_MEMORY_H

/* Arrays of float32 that outlive steps: residuals, momentum, what is owed. Kernels
 * of a device work on them, and the host saves and loads them, so those of a device
 * are managed memory. */

#include <stdint.h>

/* `count` zeros at `place` (lcomm_plan_request.place); NULL when memory is short. */
float *lcomm_ef_memory_get(int place, uint64_t count);
void lcomm_ef_memory_free(int place, float *floats); /* NULL ok */

#endif

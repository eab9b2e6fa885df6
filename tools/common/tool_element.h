/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_COMMON_TOOL_ELEMENT_H
#define LCOMM_TOOLS_COMMON_TOOL_ELEMENT_H

#include <stdint.h>

#include "libcomm/include/libcomm.h"

/* Elements of any type as numbers. int64 is exact up to 2^53. */
double tool_element(lcomm_dtype dtype, const void *buffer, uint64_t i);

/* A `value` that is no NaN, rounded to the nearest of the type; of whole types one they hold. */
void tool_element_set(lcomm_dtype dtype, void *buffer, uint64_t i, double value);

#endif

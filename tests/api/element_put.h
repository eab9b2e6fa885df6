/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_API_ELEMENT_PUT_H
#define LCOMM_TESTS_API_ELEMENT_PUT_H

/* Elements of any type. */

#include "kernels/element.h"
#include "libcomm/include/libcomm_types.h"

static inline void element_put(lcomm_dtype dtype, void *buffer, uint64_t index, double value) {
  switch (dtype) {
  case LCOMM_FLOAT32:
    ((float *)buffer)[index] = (float)value;
    break;
  case LCOMM_FLOAT16:
    ((uint16_t *)buffer)[index] = lcomm_f32_to_f16((float)value);
    break;
  case LCOMM_BFLOAT16:
    ((uint16_t *)buffer)[index] = lcomm_f32_to_bf16((float)value);
    break;
  case LCOMM_FLOAT64:
    ((double *)buffer)[index] = value;
    break;
  case LCOMM_INT32:
    ((int32_t *)buffer)[index] = (int32_t)value;
    break;
  case LCOMM_INT64:
    ((int64_t *)buffer)[index] = (int64_t)value;
    break;
  case LCOMM_INT8:
    ((int8_t *)buffer)[index] = (int8_t)value;
    break;
  case LCOMM_UINT8:
    ((uint8_t *)buffer)[index] = (uint8_t)(int)value;
    break;
  }
}

#endif

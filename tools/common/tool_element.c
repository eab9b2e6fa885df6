/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/common/tool_element.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* To the nearest, ties to even, as all that converts here. */
static uint16_t f16_of(float x) {
  uint32_t sign = bits_of(x) >> 16 & 0x8000, size = bits_of(x) & 0x7fffffff;
  if (size < UINT32_C(113) << 23) { /* subnormal in 16 bits, or 0 */
    return (uint16_t)(sign | (uint32_t)lrintf(ldexpf(fabsf(x), 24)));
  }
  size += 0xfff + (size >> 13 & 1);
  return (uint16_t)(sign |
                    (size >= UINT32_C(143) << 23 ? 0x7c00 : (size - (UINT32_C(112) << 23)) >> 13));
}

static uint16_t bf16_of(float x) {
  uint32_t bits = bits_of(x);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float f16_value(uint16_t h) {
  int exponent = h >> 10 & 31;
  int mantissa = h & 1023;
  float x = exponent == 0    ? ldexpf((float)mantissa, -24)
            : exponent == 31 ? (mantissa != 0 ? NAN : INFINITY)
                             : ldexpf((float)(mantissa + 1024), exponent - 25);
  return h >> 15 ? -x : x;
}

double tool_element(lcomm_dtype dtype, const void *buffer, uint64_t i) {
  switch (dtype) {
  case LCOMM_FLOAT16:
    return (double)f16_value(((const uint16_t *)buffer)[i]);
  case LCOMM_BFLOAT16:
    return (double)float_of((uint32_t)((const uint16_t *)buffer)[i] << 16);
  case LCOMM_FLOAT64:
    return ((const double *)buffer)[i];
  case LCOMM_INT32:
    return ((const int32_t *)buffer)[i];
  case LCOMM_INT64:
    return (double)((const int64_t *)buffer)[i];
  case LCOMM_INT8:
    return ((const int8_t *)buffer)[i];
  case LCOMM_UINT8:
    return ((const uint8_t *)buffer)[i];
  default:
    return (double)((const float *)buffer)[i];
  }
}

void tool_element_set(lcomm_dtype dtype, void *buffer, uint64_t i, double value) {
  switch (dtype) {
  case LCOMM_FLOAT16:
    ((uint16_t *)buffer)[i] = f16_of((float)value);
    break;
  case LCOMM_BFLOAT16:
    ((uint16_t *)buffer)[i] = bf16_of((float)value);
    break;
  case LCOMM_FLOAT64:
    ((double *)buffer)[i] = value;
    break;
  case LCOMM_INT32:
    ((int32_t *)buffer)[i] = (int32_t)value;
    break;
  case LCOMM_INT64:
    ((int64_t *)buffer)[i] = (int64_t)value;
    break;
  case LCOMM_INT8:
    ((int8_t *)buffer)[i] = (int8_t)value;
    break;
  case LCOMM_UINT8:
    ((uint8_t *)buffer)[i] = (uint8_t)(int)value;
    break;
  default:
    ((float *)buffer)[i] = (float)value;
    break;
  }
}

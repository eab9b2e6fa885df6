/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/soak/soak_model.h"

#include <math.h>
#include <string.h>

#include "tools/common/tool_element.h"

enum { LARGEST = 7 };

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

uint64_t soak_draw(uint64_t *state) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  return mix(*state);
}

static int value_of(const soak_call *call, int rank, uint64_t i) {
  return (int)(mix(call->key + (uint64_t)rank * 1000003 + i * 7919) % (2 * LARGEST + 1)) - LARGEST;
}

void soak_fill(const soak_call *call, int rank, uint64_t first, uint64_t count, void *values) {
  for (uint64_t i = 0; i < count; i++) {
    tool_element_set(call->dtype, values, i, value_of(call, rank, first + i));
  }
}

/* An average as the library makes it, before it is rounded to the type. */
static double average(const soak_call *call, int sum) {
  if (LCOMM_DTYPE_IS_WHOLE(call->dtype)) {
    return sum / call->ranks;
  }
  return call->dtype == LCOMM_FLOAT64 ? sum * (1.0 / call->ranks)
                                      : (double)((float)sum * (1.0f / (float)call->ranks));
}

static double result_of(const soak_call *call, uint64_t i) {
  int sum = 0, least = LARGEST, most = -LARGEST;
  for (int rank = 0; rank < call->ranks; rank++) {
    int value = value_of(call, rank, i);
    sum += value;
    least = value < least ? value : least;
    most = value > most ? value : most;
  }
  double result = call->op == LCOMM_MIN   ? least
                  : call->op == LCOMM_MAX ? most
                  : call->op == LCOMM_AVG ? average(call, sum)
                                          : sum;
  uint64_t rounded;
  tool_element_set(call->dtype, &rounded, 0, result);
  return tool_element(call->dtype, &rounded, 0);
}

uint64_t soak_count_wrong(const soak_call *call, uint64_t first, uint64_t count, double tolerance,
                          const void *values) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < count; i++) {
    wrong +=
        !(fabs(tool_element(call->dtype, values, i) - result_of(call, first + i)) <= tolerance);
  }
  return wrong;
}

uint64_t soak_count_other(const soak_call *call, int rank, uint64_t first, uint64_t count,
                          const void *values) {
  size_t size = lcomm_dtype_size(call->dtype);
  uint64_t other = 0, wanted = 0;
  for (uint64_t i = 0; i < count; i++) {
    tool_element_set(call->dtype, &wanted, 0, value_of(call, rank, first + i));
    other += memcmp(&wanted, (const char *)values + i * size, size) != 0;
  }
  return other;
}

double soak_largest(const soak_call *call) {
  return (double)LARGEST * call->ranks;
}

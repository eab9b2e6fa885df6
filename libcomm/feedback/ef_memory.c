/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/feedback/ef_memory.h"

#include <stdlib.h>
#include <string.h>

#include "libcomm/device/device.h"

float *lcomm_ef_memory_get(lcomm_memory_location location, uint64_t count) {
  void *memory = NULL;
  if (!lcomm_memory_is_on_device(location)) {
    return calloc(count + 1, sizeof(float));
  }
  if (lcomm_device_get(NULL)->memory.managed_get((count + 1) * sizeof(float), &memory) != 0) {
    return NULL;
  }
  return memset(memory, 0, (count + 1) * sizeof(float));
}

bool lcomm_ef_memory_copy(lcomm_memory_location location, const float *from, uint64_t count,
                          float **copy) {
  *copy = from && count > 0 ? lcomm_ef_memory_get(location, count) : NULL;
  if (*copy) {
    memcpy(*copy, from, count * sizeof(float));
  }
  return *copy || !from || count == 0;
}

void lcomm_ef_memory_free(lcomm_memory_location location, float *floats) {
  if (!lcomm_memory_is_on_device(location)) {
    free(floats);
  } else if (floats) {
    (void)lcomm_device_get(NULL)->memory.free(floats);
  }
}

/* ------------------------------------------------------------------ pairs */

void lcomm_ef_array_free(lcomm_memory_location location, lcomm_ef_array *array) {
  lcomm_ef_memory_free(location, array->now);
  lcomm_ef_memory_free(location, array->before);
  *array = (lcomm_ef_array){NULL, NULL};
}

bool lcomm_ef_array_double(lcomm_memory_location location, uint64_t count, lcomm_ef_array *array) {
  if (array->now && !array->before) {
    array->before = lcomm_ef_memory_get(location, count);
  }
  return array->before || !array->now;
}

void lcomm_ef_array_single(lcomm_memory_location location, lcomm_ef_array *array) {
  lcomm_ef_memory_free(location, array->before);
  array->before = NULL;
}

void lcomm_ef_array_turn(lcomm_ef_array *array) {
  if (array->before) {
    *array = (lcomm_ef_array){array->before, array->now};
  }
}

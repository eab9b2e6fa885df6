/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/feedback/ef_memory.h"

#include <stdlib.h>
#include <string.h>

#include "libcomm/device/device.h"
#include "libcomm/engine/device_turn.h"

static void *get_managed(lcomm_comm *comm, size_t size) {
  void *memory = NULL;
  unsigned depth = lcomm_turn_give(comm);
  int error = lcomm_device_get(NULL)->memory.managed_get(size, &memory);
  lcomm_turn_take(comm, depth);
  return error == 0 ? memset(memory, 0, size) : NULL;
}

float *lcomm_ef_memory_get(lcomm_comm *comm, lcomm_memory_location location, uint64_t count) {
  return lcomm_memory_is_on_device(location) ? get_managed(comm, (count + 1) * sizeof(float))
                                             : calloc(count + 1, sizeof(float));
}

bool lcomm_ef_memory_copy(lcomm_comm *comm, lcomm_memory_location location, const float *from,
                          uint64_t count, float **copy) {
  *copy = from && count > 0 ? lcomm_ef_memory_get(comm, location, count) : NULL;
  if (*copy) {
    memcpy(*copy, from, count * sizeof(float));
  }
  return *copy || !from || count == 0;
}

static void free_managed(lcomm_comm *comm, float *floats) {
  unsigned depth = lcomm_turn_give(comm);
  (void)lcomm_device_get(NULL)->memory.free(floats);
  lcomm_turn_take(comm, depth);
}

void lcomm_ef_memory_free(lcomm_comm *comm, lcomm_memory_location location, float *floats) {
  if (!lcomm_memory_is_on_device(location)) {
    free(floats);
  } else if (floats) {
    free_managed(comm, floats);
  }
}

/* ------------------------------------------------------------------ pairs */

void lcomm_ef_array_free(lcomm_comm *comm, lcomm_memory_location location, lcomm_ef_array *array) {
  lcomm_ef_memory_free(comm, location, array->now);
  lcomm_ef_memory_free(comm, location, array->before);
  *array = (lcomm_ef_array){NULL, NULL};
}

bool lcomm_ef_array_double(lcomm_comm *comm, lcomm_memory_location location, uint64_t count,
                           lcomm_ef_array *array) {
  if (array->now && !array->before) {
    array->before = lcomm_ef_memory_get(comm, location, count);
  }
  return array->before || !array->now;
}

void lcomm_ef_array_single(lcomm_comm *comm, lcomm_memory_location location,
                           lcomm_ef_array *array) {
  lcomm_ef_memory_free(comm, location, array->before);
  array->before = NULL;
}

void lcomm_ef_array_turn(lcomm_ef_array *array) {
  if (array->before) {
    *array = (lcomm_ef_array){array->before, array->now};
  }
}

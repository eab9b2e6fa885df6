/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/device/memory_location.h"

#include <stdio.h>

#include "libcomm/device/device.h"

int lcomm_memory_location_of(const void *buffer, uint64_t size) {
  const lcomm_device_table *table = size > 0 ? lcomm_device_in_use() : NULL;
  if (!table) {
    return 0;
  }
  lcomm_memory_place place = table->place(buffer);
  bool there = place.kind == LCOMM_MEMORY_DEVICE || place.kind == LCOMM_MEMORY_MANAGED;
  return there && place.device >= 0 ? place.device + 1 : 0;
}

const char *lcomm_memory_location_name(int place, char text[LCOMM_MEMORY_LOCATION_NAME_MAX]) {
  if (place == 0) {
    return "in host memory";
  }
  snprintf(text, LCOMM_MEMORY_LOCATION_NAME_MAX, "on device %d", place - 1);
  return text;
}

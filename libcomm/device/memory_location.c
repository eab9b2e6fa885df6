/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/device/memory_location.h"

#include <stdio.h>

#include "libcomm/device/device.h"

static const lcomm_memory_location host = {LCOMM_MEMORY_HOST, 0};

static lcomm_memory_location locate(const lcomm_device_table *table, const void *address) {
  lcomm_memory_location found = table->locate(address);
  bool there = lcomm_memory_is_on_device(found) && found.device >= 0;
  return there ? (lcomm_memory_location){LCOMM_MEMORY_DEVICE, found.device} : host;
}

lcomm_memory_location lcomm_memory_location_of(const void *buffer, uint64_t size) {
  const lcomm_device_table *table = size > 0 ? lcomm_device_in_use() : NULL;
  return table ? locate(table, buffer) : host;
}

void lcomm_buffers_locate(lcomm_buffer *one, lcomm_buffer *other) {
  const lcomm_device_table *table =
      one->count > 0 || other->count > 0 ? lcomm_device_in_use() : NULL;
  one->location = table && one->count > 0 ? locate(table, one->data) : host;
  other->location = table && other->count > 0 ? locate(table, other->data) : host;
}

const char *lcomm_memory_location_name(lcomm_memory_location location,
                                       char text[LCOMM_MEMORY_LOCATION_NAME_MAX]) {
  if (!lcomm_memory_is_on_device(location)) {
    return "in host memory";
  }
  snprintf(text, LCOMM_MEMORY_LOCATION_NAME_MAX, "on device %d", location.device);
  return text;
}

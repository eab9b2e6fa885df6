/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/run_values.h"

#include <stdlib.h>

#include "libcomm/engine/backend.h"
#include "libcomm/engine/run_device.h"

bool lcomm_run_has_values(const lcomm_run *run) {
  return run->backend->is_host || (run->tape && !run->recording);
}

static lcomm_status copy(lcomm_run_values *it) {
  const lcomm_run_device *device = it->run->device;
  LCOMM_TRY(it->run->backend->vectors->copy(it->run, it->copy, it->vector, it->size));
  return lcomm_run_device_check(it->run, "a copy", device->table->stream.finish(device->stream));
}

const void *lcomm_run_values_get(void *values) {
  lcomm_run_values *it = values;
  if (it->run->backend->is_host) {
    return it->vector;
  }
  it->copy = malloc(it->size);
  it->status = it->copy ? copy(it) : LCOMM_OK;
  return it->copy && it->status == LCOMM_OK ? it->copy : NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/lanes.h"

#include <stdlib.h>

#include "libcomm/device/device.h"

static void destroy(lcomm_lanes *lanes) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  int before = lanes->ordinal;
  (void)table->current(&before);
  (void)table->use(lanes->ordinal);
  for (int i = 0; i < LCOMM_LANE_COUNT; i++) {
    (void)table->stream.destroy(lanes->stream[i]);
  }
  (void)table->use(before);
  free(lanes);
}

static lcomm_lanes *find(const lcomm_comm *comm, int ordinal, lcomm_sequence_space space) {
  lcomm_lanes *it = comm->runs.lanes;
  while (it && (it->ordinal != ordinal || it->space != space)) {
    it = it->next;
  }
  return it;
}

const lcomm_lanes *lcomm_lanes_of(lcomm_comm *comm, int ordinal, lcomm_sequence_space space,
                                  int *error) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  lcomm_lanes *lanes = find(comm, ordinal, space);
  if (lanes) {
    return lanes;
  }
  lanes = calloc(1, sizeof *lanes);
  *error = lanes ? 0 : -1;
  for (int i = 0; i < LCOMM_LANE_COUNT && *error == 0; i++) {
    *error = table->stream.work_create(&lanes->stream[i]);
  }
  if (*error != 0) {
    if (lanes) {
      lanes->ordinal = ordinal;
      destroy(lanes);
    }
    return NULL;
  }
  lanes->ordinal = ordinal;
  lanes->space = space;
  lanes->next = comm->runs.lanes;
  comm->runs.lanes = lanes;
  return lanes;
}

void lcomm_lanes_free(lcomm_comm *comm) {
  while (comm->runs.lanes) {
    lcomm_lanes *lanes = comm->runs.lanes;
    comm->runs.lanes = lanes->next;
    destroy(lanes);
  }
}

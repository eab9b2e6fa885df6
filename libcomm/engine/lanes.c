/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/lanes.h"

#include <stdlib.h>

#include "libcomm/device/device.h"
#include "libcomm/engine/device_turn.h"

static void destroy(lcomm_lanes *lanes) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  int before = lanes->ordinal;
  (void)lcomm_device_enter(table, lanes->ordinal, &before);
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

/* Streams, on the device in use. */
static lcomm_lanes *make(int ordinal, int *error) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  lcomm_lanes *lanes = calloc(1, sizeof *lanes);
  *error = lanes ? 0 : -1;
  for (int i = 0; i < LCOMM_LANE_COUNT && *error == 0; i++) {
    *error = table->stream.work_create(&lanes->stream[i]);
  }
  if (lanes) {
    lanes->ordinal = ordinal;
  }
  if (lanes && *error != 0) {
    destroy(lanes);
    return NULL;
  }
  return lanes;
}

const lcomm_lanes *lcomm_lanes_of(lcomm_comm *comm, int ordinal, lcomm_sequence_space space,
                                  int *error) {
  lcomm_lanes *lanes = find(comm, ordinal, space);
  if (lanes) {
    return lanes;
  }
  lanes = make(ordinal, error);
  if (lanes) {
    lanes->space = space;
    lanes->next = comm->runs.lanes;
    comm->runs.lanes = lanes;
  }
  return lanes;
}

static void finish(const lcomm_lanes *lanes) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  int before = lanes->ordinal;
  (void)lcomm_device_enter(table, lanes->ordinal, &before);
  for (int i = 0; i < LCOMM_LANE_COUNT; i++) {
    (void)table->stream.finish(lanes->stream[i]);
  }
  (void)table->use(before);
}

void lcomm_lanes_finish(lcomm_comm *comm) {
  unsigned depth = comm->runs.lanes ? lcomm_turn_give(comm) : 0;
  for (const lcomm_lanes *it = comm->runs.lanes; it; it = it->next) {
    finish(it);
  }
  lcomm_turn_take(comm, depth);
}

/* ---------------------------------------------------------------- captured */

/* A capture that has ended let go of all that was in it. */
static bool is_captured(const lcomm_lanes *lanes) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  bool any = false;
  for (int i = 0; i < LCOMM_LANE_COUNT; i++) {
    uint64_t capture = 0;
    any |= table->stream.captured(lanes->stream[i], &capture) != 0 || capture != 0;
  }
  return any;
}

const lcomm_lanes *lcomm_lanes_captured(lcomm_lanes **all, int ordinal, uint64_t capture,
                                        int *error) {
  lcomm_lanes *lanes = *all;
  while (lanes &&
         (lanes->ordinal != ordinal || (lanes->capture != capture && is_captured(lanes)))) {
    lanes = lanes->next;
  }
  if (!lanes) {
    lanes = make(ordinal, error);
    if (!lanes) {
      return NULL;
    }
    lanes->next = *all;
    *all = lanes;
  }
  lanes->capture = capture;
  return lanes;
}

static void destroy_all(lcomm_lanes **all) {
  while (*all) {
    lcomm_lanes *lanes = *all;
    *all = lanes->next;
    destroy(lanes);
  }
}

void lcomm_lanes_free(lcomm_comm *comm) {
  destroy_all(&comm->runs.lanes);
  destroy_all(&comm->recordings.lanes);
  destroy_all(&comm->recordings.pair_lanes);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_workers.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/tool_pages.h"

/* Bytes that a rival handles in a row, for the clock. */
static const uint64_t turn_bytes = 16 << 20;

static lcomm_status allocate(lcomm_lanes *lanes) {
  size_t size = (size_t)lanes->size_bytes;
  lanes->lane = calloc(lanes->threads, sizeof *lanes->lane);
  lanes->pointers = calloc(lanes->threads, sizeof *lanes->pointers);
  if (!lanes->lane || !lanes->pointers) {
    return LCOMM_ERR_MEMORY;
  }
  for (size_t i = 0; i < lanes->threads; i++) {
    lcomm_lane *lane = &lanes->lane[i];
    lanes->pointers[i] = lane;
    lane->count = size / sizeof(float);
    lane->source = lcomm_pages_alloc(size);
    lane->destination = lcomm_pages_alloc(size);
    lane->scratch = lcomm_pages_alloc(size);
    if (!lane->source || !lane->destination || !lane->scratch) {
      return LCOMM_ERR_MEMORY;
    }
  }
  return LCOMM_OK;
}

static void touch(void *argument, size_t rival) {
  lcomm_lane *lane = argument;
  (void)rival;
  memcpy(lane->source, lane->task, lane->count * sizeof(float));
  memset(lane->destination, 0, lane->count * sizeof(float));
  memset(lane->scratch, 0, lane->count * sizeof(float));
}

static lcomm_status fill(lcomm_lanes *lanes, const lcomm_dataset *dataset) {
  float *values = lcomm_pages_alloc((size_t)lanes->size_bytes);
  if (!values) {
    return LCOMM_ERR_MEMORY;
  }
  lcomm_dataset_fill(dataset, lanes->size_bytes / sizeof(float), values);
  for (size_t i = 0; i < lanes->threads; i++) {
    lanes->lane[i].task = values;
  }
  double seconds;
  lcomm_race race = {.threads = lanes->threads,
                     .rivals = 1,
                     .repetitions = 1,
                     .turns = 1,
                     .lanes = lanes->pointers,
                     .run = touch};
  lcomm_status status = lcomm_race_run(&race, &seconds);
  lcomm_pages_free(values, (size_t)lanes->size_bytes);
  return status;
}

lcomm_status lcomm_lanes_create(const lcomm_bench_options *options, const lcomm_dataset *dataset,
                                uint64_t size_bytes, lcomm_lanes *lanes) {
  *lanes = (lcomm_lanes){.threads = (size_t)options->threads,
                         .repetitions = (size_t)options->repetitions,
                         .size_bytes = size_bytes};
  lcomm_status status = allocate(lanes);
  if (status == LCOMM_OK) {
    status = fill(lanes, dataset);
  }
  if (status != LCOMM_OK) {
    lcomm_lanes_destroy(lanes);
  }
  return status;
}

void lcomm_lanes_destroy(lcomm_lanes *lanes) {
  size_t size = (size_t)lanes->size_bytes;
  for (size_t i = 0; lanes->lane != NULL && i < lanes->threads; i++) {
    lcomm_subject_destroy(lanes->lane[i].subject);
    lcomm_pages_free(lanes->lane[i].source, size);
    lcomm_pages_free(lanes->lane[i].destination, size);
    lcomm_pages_free(lanes->lane[i].scratch, size);
  }
  free(lanes->lane);
  free(lanes->pointers);
  *lanes = (lcomm_lanes){0};
}

lcomm_status lcomm_lanes_set_codec(lcomm_lanes *lanes, const lcomm_bench_codec *codec) {
  lcomm_status status = LCOMM_OK;
  for (size_t i = 0; i < lanes->threads; i++) {
    lcomm_lane *lane = &lanes->lane[i];
    lcomm_subject_destroy(lane->subject);
    lane->subject = NULL;
    if (!codec || status != LCOMM_OK) {
      continue;
    }
    lcomm_subject_shape shape = {.choice = &codec->choice, .count = lane->count};
    status = lcomm_subject_create(&shape, &lane->subject);
  }
  return status;
}

lcomm_status lcomm_lanes_race(lcomm_lanes *lanes, const void *task, lcomm_lane_runner run,
                              size_t rivals, lcomm_race *race, double *seconds) {
  uint64_t turns = turn_bytes / lanes->size_bytes;
  *race = (lcomm_race){.threads = lanes->threads,
                       .rivals = rivals,
                       .repetitions = lanes->repetitions,
                       .turns = turns > 0 ? turns : 1,
                       .lanes = lanes->pointers,
                       .run = run};
  for (size_t i = 0; i < lanes->threads; i++) {
    lanes->lane[i].task = task;
  }
  lcomm_status status = lcomm_race_run(race, seconds);
  for (size_t i = 0; status == LCOMM_OK && i < lanes->threads; i++) {
    status = lanes->lane[i].status;
  }
  return status;
}

double lcomm_lanes_gb(const lcomm_lanes *lanes) {
  return 1e-9 * (double)lanes->size_bytes * (double)lanes->threads;
}

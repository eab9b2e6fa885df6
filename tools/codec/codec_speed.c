/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_speed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/codec/codec_compare.h"
#include "tools/codec/codec_roofline.h"
#include "tools/codec/codec_workers.h"
#include "tools/common/tool_units.h"

/* What an operation is measured against. */
typedef enum floor_kind {
  FLOOR_NONE,
  FLOOR_SHAPE, /* same reads and writes without arithmetic */
  FLOOR_ADD,   /* residual += gradient */
  FLOOR_READ,
  FLOOR_ZERO
} floor_kind;

typedef struct task {
  lcomm_operation operation;
  const lcomm_kernels *const *tables;
  size_t table_count;
  floor_kind kind;
  const lcomm_floor *floor; /* FLOOR_SHAPE */
} task;

/* After the tables. */
enum { RIVAL_MEMCPY, RIVAL_FLOOR };

static void run_codec(lcomm_lane *lane, lcomm_operation operation, const lcomm_kernels *kernels) {
  lcomm_status status = LCOMM_OK;
  if (operation == LCOMM_OPERATION_ENCODE) {
    lcomm_subject_encode(lane->subject, kernels, lane->source, 1);
  } else if (operation == LCOMM_OPERATION_DECODE) {
    status = lcomm_subject_decode(lane->subject, kernels, lane->destination);
  } else {
    status = lcomm_subject_add(lane->subject, kernels, lane->destination);
  }
  if (status != LCOMM_OK) {
    lane->status = status;
  }
}

static void run_floor(lcomm_lane *lane, const task *t) {
  const lcomm_kernels *best = t->tables[t->table_count - 1];
  const void *read = lane->source;
  switch (t->kind) {
  case FLOOR_SHAPE:
    if (t->operation != LCOMM_OPERATION_ENCODE) {
      read = lcomm_subject_payload(lane->subject);
    }
    t->floor->run(read, lane->scratch, lane->count);
    return;
  case FLOOR_ADD:
    best->f32_add(lane->source, 1.0f, lane->scratch, lane->count);
    return;
  case FLOOR_READ:
    best->f32_count_not_finite(lane->source, lane->count);
    return;
  case FLOOR_ZERO:
    memset(lane->scratch, 0, lane->count * sizeof(float));
    return;
  case FLOOR_NONE:
    return;
  }
}

static void run_rival(void *argument, size_t rival) {
  lcomm_lane *lane = argument;
  const task *t = lane->task;
  if (rival < t->table_count) {
    run_codec(lane, t->operation, t->tables[rival]);
  } else if (rival == t->table_count + RIVAL_MEMCPY) {
    memcpy(lane->scratch, lane->source, lane->count * sizeof(float));
  } else {
    run_floor(lane, t);
  }
}

/* Bytes of a code of a dense codec. */
static double code_bytes(const lcomm_codec *codec) {
  switch (codec->id) {
  case LCOMM_CODEC_NONE:
    return 4.0;
  case LCOMM_CODEC_FP16:
  case LCOMM_CODEC_BF16:
    return 2.0;
  case LCOMM_CODEC_INT4:
    return 0.5;
  default:
    return 1.0;
  }
}

static void set_sparse_floor(const lcomm_codec_choice *choice, task *t) {
  if (t->operation == LCOMM_OPERATION_ENCODE) {
    t->kind = choice->error_feedback ? FLOOR_ADD : FLOOR_READ;
  } else {
    t->kind = t->operation == LCOMM_OPERATION_DECODE ? FLOOR_ZERO : FLOOR_NONE;
  }
}

static void set_floor(const lcomm_codec_choice *choice, task *t) {
  double code = code_bytes(choice->format.codec);
  if (lcomm_format_is_sparse(&choice->format)) {
    set_sparse_floor(choice, t);
    return;
  }
  if (t->operation != LCOMM_OPERATION_ENCODE) {
    t->floor = lcomm_floor_find(code, 4.0, t->operation == LCOMM_OPERATION_ADD);
  } else if (!choice->error_feedback) {
    t->floor = lcomm_floor_find(4.0, code, false);
  }
  t->kind = t->floor ? FLOOR_SHAPE : choice->error_feedback ? FLOOR_ADD : FLOOR_NONE;
}

static const char *floor_name(const task *t) {
  static const char *const names[] = {
      [FLOOR_NONE] = NULL, [FLOOR_ADD] = "e+=g", [FLOOR_READ] = "read", [FLOOR_ZERO] = "zero"};
  return t->kind == FLOOR_SHAPE ? t->floor->name : names[t->kind];
}

static void note(const task *t, const lcomm_lanes *lanes, const lcomm_race *race,
                 const double *seconds, lcomm_result *result) {
  double gb = lcomm_lanes_gb(lanes);
  size_t copy = t->table_count + RIVAL_MEMCPY, floor = t->table_count + RIVAL_FLOOR;
  for (size_t i = 0; i < t->table_count; i++) {
    lcomm_speed *speed = &result->speeds[result->speed_count++];
    *speed = (lcomm_speed){.kernels = t->tables[i],
                           .size_bytes = lanes->size_bytes,
                           .operation = t->operation,
                           .floor = floor_name(t),
                           .gb_s = lcomm_race_rate(race, seconds, i, gb),
                           .memcpy_gb_s = lcomm_race_rate(race, seconds, copy, gb),
                           .of_memcpy = lcomm_race_ratio(race, seconds, i, copy),
                           .of_best = lcomm_race_ratio(race, seconds, i, t->table_count - 1)};
    if (!speed->floor) {
      continue;
    }
    speed->floor_gb_s = lcomm_race_rate(race, seconds, floor, gb);
    speed->of_floor = lcomm_race_ratio(race, seconds, i, floor);
  }
}

static lcomm_status race_operation(const lcomm_bench_options *options, lcomm_lanes *lanes,
                                   lcomm_operation operation, lcomm_result *result) {
  task t = {.operation = operation, .tables = options->tables, .table_count = options->table_count};
  set_floor(&result->codec->choice, &t);
  size_t rivals = t.table_count + (t.kind == FLOOR_NONE ? RIVAL_FLOOR : RIVAL_FLOOR + 1);
  double *seconds = calloc(lanes->repetitions * rivals, sizeof *seconds);
  if (!seconds) {
    return LCOMM_ERR_MEMORY;
  }
  lcomm_race race;
  lcomm_status status = lcomm_lanes_race(lanes, &t, run_rival, rivals, &race, seconds);
  if (status == LCOMM_OK) {
    note(&t, lanes, &race, seconds, result);
  }
  free(seconds);
  return status;
}

static lcomm_status race_codec(const lcomm_results *results, lcomm_lanes *lanes,
                               lcomm_result *result, lcomm_progress *progress) {
  char what[LCOMM_BENCH_CODEC_TEXT_MAX + 2 * LCOMM_UNITS_TEXT_MAX], size[LCOMM_UNITS_TEXT_MAX];
  lcomm_status status = lcomm_lanes_set_codec(lanes, result->codec);
  if (status == LCOMM_ERR_ARGUMENT) {
    lcomm_result_refuse(result, "a buffer of this --size is too large for it");
    return LCOMM_OK;
  }
  for (int i = 0; status == LCOMM_OK && i < LCOMM_OPERATIONS; i++) {
    lcomm_operation operation = (lcomm_operation)i;
    snprintf(what, sizeof what, "%s %s %s", result->codec->text, lcomm_operation_name(operation),
             lcomm_units_bytes(lanes->size_bytes, size));
    lcomm_progress_next(progress, what);
    status = race_operation(results->options, lanes, operation, result);
    lcomm_progress_add(progress, 1);
  }
  return status == LCOMM_OK ? lcomm_duel_run(results, lanes, result) : status;
}

lcomm_status lcomm_speed_run(lcomm_results *results, lcomm_progress *progress) {
  const lcomm_bench_options *options = results->options;
  lcomm_status status = LCOMM_OK;
  for (size_t i = 0; status == LCOMM_OK && i < options->size_count; i++) {
    lcomm_lanes lanes;
    status = lcomm_lanes_create(options, results->dataset, options->sizes[i], &lanes);
    if (status != LCOMM_OK) {
      break;
    }
    for (size_t c = 0; status == LCOMM_OK && c < options->codec_count; c++) {
      status = race_codec(results, &lanes, &results->codecs[c], progress);
    }
    lcomm_lanes_destroy(&lanes);
  }
  return status == LCOMM_ERR_WIRE ? LCOMM_ERR_INTERNAL : status;
}

uint64_t lcomm_speed_units(const lcomm_results *results) {
  return results->options->size_count * results->options->codec_count * LCOMM_OPERATIONS;
}

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
typedef enum roofline_kind {
  ROOFLINE_NONE,
  ROOFLINE_SHAPE, /* same reads and writes without arithmetic */
  ROOFLINE_ADD,   /* residual += gradient */
  ROOFLINE_READ,
  ROOFLINE_ZERO
} roofline_kind;

typedef struct task {
  lcomm_operation operation;
  const lcomm_kernels *const *tables;
  size_t table_count;
  roofline_kind kind;
  const lcomm_roofline *roofline; /* ROOFLINE_SHAPE */
} task;

/* After the tables. */
enum { VARIANT_MEMCPY, VARIANT_ROOFLINE };

static void run_owners(lcomm_worker *worker, lcomm_operation operation,
                       const lcomm_kernels *kernels) {
  if (operation == LCOMM_OPERATION_ENCODE) {
    lcomm_owners_encode(worker->owners, kernels, worker->source);
  } else if (operation == LCOMM_OPERATION_DECODE) {
    lcomm_owners_decode(worker->owners, worker->destination);
  } else {
    lcomm_owners_add(worker->owners, worker->destination);
  }
}

static void run_codec(lcomm_worker *worker, lcomm_operation operation,
                      const lcomm_kernels *kernels) {
  lcomm_status status = LCOMM_OK;
  if (worker->owners) {
    run_owners(worker, operation, kernels);
  } else if (operation == LCOMM_OPERATION_ENCODE) {
    lcomm_under_test_encode(worker->tested, kernels, worker->source, 1);
  } else if (operation == LCOMM_OPERATION_DECODE) {
    status = lcomm_under_test_decode(worker->tested, kernels, worker->destination);
  } else {
    status = lcomm_under_test_add(worker->tested, kernels, worker->destination);
  }
  if (status != LCOMM_OK) {
    worker->status = status;
  }
}

static void run_roofline(lcomm_worker *worker, const task *t) {
  const lcomm_kernels *best = t->tables[t->table_count - 1];
  const void *read = worker->source;
  switch (t->kind) {
  case ROOFLINE_SHAPE:
    if (t->operation != LCOMM_OPERATION_ENCODE) {
      read = lcomm_under_test_payload(worker->tested);
    }
    lcomm_roofline_run(t->roofline, read, worker->scratch, worker->count);
    return;
  case ROOFLINE_ADD:
    best->f32_add(worker->source, 1.0f, worker->scratch, worker->count);
    return;
  case ROOFLINE_READ:
    best->f32_count_not_finite(worker->source, worker->count);
    return;
  case ROOFLINE_ZERO:
    memset(worker->scratch, 0, worker->count * sizeof(float));
    return;
  case ROOFLINE_NONE:
    return;
  }
}

static void run_variant(void *argument, size_t variant) {
  lcomm_worker *worker = argument;
  const task *t = worker->task;
  if (variant < t->table_count) {
    run_codec(worker, t->operation, t->tables[variant]);
  } else if (variant == t->table_count + VARIANT_MEMCPY) {
    memcpy(worker->scratch, worker->source, worker->count * sizeof(float));
  } else {
    run_roofline(worker, t);
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
  case LCOMM_CODEC_INT2:
    return 0.25;
  case LCOMM_CODEC_SIGN:
    return 0.125;
  default:
    return 1.0;
  }
}

static void set_sparse_roofline(const lcomm_codec_spec *choice, task *t) {
  if (t->operation == LCOMM_OPERATION_ENCODE) {
    t->kind = choice->error_feedback ? ROOFLINE_ADD : ROOFLINE_READ;
  } else {
    t->kind = t->operation == LCOMM_OPERATION_DECODE ? ROOFLINE_ZERO : ROOFLINE_NONE;
  }
}

static void set_roofline(const lcomm_codec_spec *choice, task *t) {
  double code = code_bytes(choice->format.codec);
  if (lcomm_format_is_sparse(&choice->format)) {
    set_sparse_roofline(choice, t);
    return;
  }
  if (t->operation != LCOMM_OPERATION_ENCODE) {
    t->roofline = lcomm_roofline_find(code, 4.0, t->operation == LCOMM_OPERATION_ADD);
  } else if (!choice->error_feedback) {
    t->roofline = lcomm_roofline_find(4.0, code, false);
  }
  t->kind = t->roofline ? ROOFLINE_SHAPE : choice->error_feedback ? ROOFLINE_ADD : ROOFLINE_NONE;
}

static const char *roofline_name(const task *t) {
  static const char *const names[] = {[ROOFLINE_NONE] = NULL,
                                      [ROOFLINE_ADD] = "e+=g",
                                      [ROOFLINE_READ] = "read",
                                      [ROOFLINE_ZERO] = "zero"};
  return t->kind == ROOFLINE_SHAPE ? t->roofline->name : names[t->kind];
}

static void note(const task *t, const lcomm_workers *workers, const tool_timing *timing,
                 const double *seconds, lcomm_result *result) {
  double gb = lcomm_workers_gb(workers);
  size_t copy = t->table_count + VARIANT_MEMCPY, roofline = t->table_count + VARIANT_ROOFLINE;
  for (size_t i = 0; i < t->table_count; i++) {
    lcomm_speed *speed = &result->speeds[result->speed_count++];
    *speed = (lcomm_speed){.kernels = t->tables[i],
                           .size_bytes = workers->size_bytes,
                           .operation = t->operation,
                           .roofline = roofline_name(t),
                           .gb_s = tool_timing_rate(timing, seconds, i, gb),
                           .memcpy_gb_s = tool_timing_rate(timing, seconds, copy, gb),
                           .of_memcpy = tool_timing_ratio(timing, seconds, i, copy),
                           .of_best = tool_timing_ratio(timing, seconds, i, t->table_count - 1)};
    if (!speed->roofline) {
      continue;
    }
    speed->roofline_gb_s = tool_timing_rate(timing, seconds, roofline, gb);
    speed->of_roofline = tool_timing_ratio(timing, seconds, i, roofline);
  }
}

static lcomm_status time_operation(const lcomm_bench_options *options, lcomm_workers *workers,
                                   lcomm_operation operation, lcomm_result *result) {
  task t = {.operation = operation, .tables = options->tables, .table_count = options->table_count};
  set_roofline(&result->codec->choice, &t);
  size_t variants =
      t.table_count + (t.kind == ROOFLINE_NONE ? VARIANT_ROOFLINE : VARIANT_ROOFLINE + 1);
  double *seconds = calloc(workers->repetitions * variants, sizeof *seconds);
  if (!seconds) {
    return LCOMM_ERR_MEMORY;
  }
  tool_timing timing;
  lcomm_status status = lcomm_workers_time(workers, &t, run_variant, variants, &timing, seconds);
  if (status == LCOMM_OK) {
    note(&t, workers, &timing, seconds, result);
  }
  free(seconds);
  return status;
}

static lcomm_status time_codec(const lcomm_results *results, lcomm_workers *workers,
                               lcomm_result *result, tool_progress *progress) {
  char what[LCOMM_BENCH_CODEC_TEXT_MAX + 2 * TOOL_UNITS_TEXT_MAX], size[TOOL_UNITS_TEXT_MAX];
  lcomm_status status = lcomm_workers_set_codec(workers, result->codec);
  if (status == LCOMM_ERR_ARGUMENT) {
    lcomm_result_refuse(result, "a buffer of this --size is too large for it");
    return LCOMM_OK;
  }
  for (int i = 0; status == LCOMM_OK && i < LCOMM_OPERATIONS; i++) {
    lcomm_operation operation = (lcomm_operation)i;
    snprintf(what, sizeof what, "%s %s %s", result->codec->text, lcomm_operation_name(operation),
             tool_units_bytes(workers->size_bytes, size));
    tool_progress_next(progress, what);
    status = time_operation(results->options, workers, operation, result);
    tool_progress_add(progress, 1);
  }
  return status == LCOMM_OK ? lcomm_compare_run(results, workers, result) : status;
}

lcomm_status lcomm_speed_run(lcomm_results *results, tool_progress *progress) {
  const lcomm_bench_options *options = results->options;
  lcomm_status status = LCOMM_OK;
  for (size_t i = 0; status == LCOMM_OK && i < options->size_count; i++) {
    lcomm_workers workers;
    status = lcomm_workers_create(options, results->dataset, options->sizes[i], &workers);
    if (status != LCOMM_OK) {
      break;
    }
    for (size_t c = 0; status == LCOMM_OK && c < options->codec_count; c++) {
      status = time_codec(results, &workers, &results->codecs[c], progress);
    }
    lcomm_workers_destroy(&workers);
  }
  return status == LCOMM_ERR_WIRE ? LCOMM_ERR_INTERNAL : status;
}

uint64_t lcomm_speed_units(const lcomm_results *results) {
  return results->options->size_count * results->options->codec_count * LCOMM_OPERATIONS;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_workers.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "tools/common/tool_pages.h"

/* Bytes that a variant handles in a row, for the clock. */
static const uint64_t turn_bytes = 16 << 20;

static lcomm_status allocate(lcomm_workers *workers) {
  size_t size = (size_t)workers->size_bytes;
  workers->worker = calloc(workers->threads, sizeof *workers->worker);
  workers->pointers = calloc(workers->threads, sizeof *workers->pointers);
  if (!workers->worker || !workers->pointers) {
    return LCOMM_ERR_MEMORY;
  }
  for (size_t i = 0; i < workers->threads; i++) {
    lcomm_worker *worker = &workers->worker[i];
    workers->pointers[i] = worker;
    worker->count = size / sizeof(float);
    worker->source = tool_pages_alloc(size);
    worker->destination = tool_pages_alloc(size);
    worker->scratch = tool_pages_alloc(size);
    if (!worker->source || !worker->destination || !worker->scratch) {
      return LCOMM_ERR_MEMORY;
    }
  }
  return LCOMM_OK;
}

static void touch(void *argument, size_t variant) {
  lcomm_worker *worker = argument;
  (void)variant;
  memcpy(worker->source, worker->task, worker->count * sizeof(float));
  memset(worker->destination, 0, worker->count * sizeof(float));
  memset(worker->scratch, 0, worker->count * sizeof(float));
}

/* The threads of a timing end with it, so they need not restore the environment. */
static void enter_standard_environment(void) {
  (void)lcomm_fp_enter();
}

static lcomm_status fill(lcomm_workers *workers, const lcomm_dataset *dataset) {
  float *values = tool_pages_alloc((size_t)workers->size_bytes);
  if (!values) {
    return LCOMM_ERR_MEMORY;
  }
  lcomm_dataset_fill(dataset, workers->size_bytes / sizeof(float), values);
  for (size_t i = 0; i < workers->threads; i++) {
    workers->worker[i].task = values;
  }
  double seconds;
  tool_timing timing = {.threads = workers->threads,
                        .variants = 1,
                        .repetitions = 1,
                        .turns = 1,
                        .workers = workers->pointers,
                        .run = touch};
  lcomm_status status = tool_timing_run(&timing, &seconds);
  tool_pages_free(values, (size_t)workers->size_bytes);
  return status;
}

lcomm_status lcomm_workers_create(const lcomm_bench_options *options, const lcomm_dataset *dataset,
                                  uint64_t size_bytes, lcomm_workers *workers) {
  *workers = (lcomm_workers){.threads = (size_t)options->threads,
                             .repetitions = (size_t)options->repetitions,
                             .size_bytes = size_bytes,
                             .owners = (uint32_t)options->owners};
  lcomm_status status = allocate(workers);
  if (status == LCOMM_OK) {
    status = fill(workers, dataset);
  }
  if (status != LCOMM_OK) {
    lcomm_workers_destroy(workers);
  }
  return status;
}

void lcomm_workers_destroy(lcomm_workers *workers) {
  size_t size = (size_t)workers->size_bytes;
  for (size_t i = 0; workers->worker != NULL && i < workers->threads; i++) {
    lcomm_under_test_destroy(workers->worker[i].tested);
    lcomm_owners_destroy(workers->worker[i].owners);
    tool_pages_free(workers->worker[i].source, size);
    tool_pages_free(workers->worker[i].destination, size);
    tool_pages_free(workers->worker[i].scratch, size);
  }
  free(workers->worker);
  free(workers->pointers);
  *workers = (lcomm_workers){0};
}

lcomm_status lcomm_workers_set_codec(lcomm_workers *workers, const lcomm_bench_codec *codec) {
  lcomm_status status = LCOMM_OK;
  for (size_t i = 0; i < workers->threads; i++) {
    lcomm_worker *worker = &workers->worker[i];
    lcomm_under_test_destroy(worker->tested);
    lcomm_owners_destroy(worker->owners);
    worker->tested = NULL;
    worker->owners = NULL;
    if (!codec || status != LCOMM_OK) {
      continue;
    }
    if (workers->owners > 1 && lcomm_format_is_sparse(&codec->choice.format)) {
      status = lcomm_owners_create(&codec->choice, worker->count, workers->owners, &worker->owners);
      continue;
    }
    lcomm_under_test_shape shape = {.choice = &codec->choice, .count = worker->count};
    status = lcomm_under_test_create(&shape, &worker->tested);
  }
  return status;
}

lcomm_status lcomm_workers_time(lcomm_workers *workers, const void *task, tool_timing_runner run,
                                size_t variants, tool_timing *timing, double *seconds) {
  uint64_t turns = turn_bytes / workers->size_bytes;
  *timing = (tool_timing){.threads = workers->threads,
                          .variants = variants,
                          .repetitions = workers->repetitions,
                          .turns = turns > 0 ? turns : 1,
                          .workers = workers->pointers,
                          .run = run,
                          .begin = enter_standard_environment};
  for (size_t i = 0; i < workers->threads; i++) {
    workers->worker[i].task = task;
  }
  lcomm_status status = tool_timing_run(timing, seconds);
  for (size_t i = 0; status == LCOMM_OK && i < workers->threads; i++) {
    status = workers->worker[i].status;
  }
  return status;
}

double lcomm_workers_gb(const lcomm_workers *workers) {
  return 1e-9 * (double)workers->size_bytes * (double)workers->threads;
}

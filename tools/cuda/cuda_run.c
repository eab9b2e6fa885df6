/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/cuda/cuda_run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/tool_progress.h"

bool lcomm_gpu_is_wanted(const lcomm_gpu_options *options, const lcomm_gpu_case *what) {
  return !options->only || strstr(what->name, options->only) != NULL;
}

static size_t copy_size(const lcomm_gpu_options *options) {
  size_t most = 0;
  for (size_t i = 0; i < lcomm_gpu_case_count; i++) {
    size_t size = lcomm_gpu_copy_size(&lcomm_gpu_cases[i], options->count);
    if (lcomm_gpu_is_wanted(options, &lcomm_gpu_cases[i]) && size > most) {
      most = size;
    }
  }
  return most;
}

/* A kernel that never ends cannot be stopped by the thread that waits for it. */
static void expect_an_end(const lcomm_gpu_options *options) {
  alarm((unsigned)options->limit_s);
}

static void measure_one(lcomm_gpu_fixture *fixture, const lcomm_gpu_case *what,
                        lcomm_gpu_after *after, lcomm_gpu_results *results) {
  const lcomm_gpu_options *options = results->options;
  expect_an_end(options);
  lcomm_gpu_figure *figure = &results->figures[results->figure_count++];
  *figure = lcomm_gpu_measure(fixture, what, (size_t)options->samples, options->launches);
  /* After some errors a device refuses this process all that follows. */
  results->lost =
      figure->verdict == LCOMM_GPU_WRONG && !lcomm_gpu_set(fixture, fixture->code, 0, 1);
  if (after) {
    after(results);
  }
}

static void measure_all(lcomm_gpu_fixture *fixture, lcomm_gpu_after *after,
                        lcomm_gpu_results *results) {
  tool_progress progress = tool_progress_begin(lcomm_gpu_case_count);
  if (after) {
    after(results);
  }
  for (size_t i = 0; i < lcomm_gpu_case_count && !results->lost; i++) {
    const lcomm_gpu_case *what = &lcomm_gpu_cases[i];
    tool_progress_next(&progress, what->name);
    if (lcomm_gpu_is_wanted(results->options, what)) {
      measure_one(fixture, what, after, results);
    }
    tool_progress_add(&progress, 1);
  }
  tool_progress_end(&progress);
}

bool lcomm_gpu_bench_run(const lcomm_gpu_options *options, const lcomm_device_table *table,
                         lcomm_gpu_after *after, lcomm_gpu_results *results) {
  lcomm_gpu_fixture fixture;
  expect_an_end(options);
  *results = (lcomm_gpu_results){.options = options, .torch = {.script = options->torch_script}};
  bool good =
      lcomm_gpu_fixture_open(&fixture, table, options->device, options->count, copy_size(options));
  results->facts = fixture.facts;
  if (!good) {
    memcpy(results->why, fixture.why, sizeof results->why);
  } else if (table->version(&results->driver, &results->runtime) != 0) {
    results->driver = results->runtime = 0;
  }
  if (good) {
    measure_all(&fixture, after, results);
  }
  lcomm_gpu_fixture_close(&fixture); /* PyTorch needs the memory */
  alarm(0);                          /* its script has a limit of its own */
  if (good && !results->lost && results->torch.script && options->samples > 0) {
    lcomm_gpu_torch_run(&results->torch, options->count, (size_t)options->samples, options->device);
  }
  return good;
}

double lcomm_gpu_times_torch(const lcomm_gpu_results *results) {
  for (size_t i = 0; i < results->figure_count; i++) {
    const lcomm_gpu_figure *figure = &results->figures[i];
    if (figure->what->operation == LCOMM_GPU_TOPK && figure->verdict != LCOMM_GPU_WRONG &&
        results->torch.measured) {
      return results->torch.seconds.median / figure->seconds.median;
    }
  }
  return 0.0;
}

bool lcomm_gpu_is_right(const lcomm_gpu_results *results) {
  for (size_t i = 0; i < results->figure_count; i++) {
    if (results->figures[i].verdict == LCOMM_GPU_WRONG) {
      return false;
    }
  }
  return true;
}

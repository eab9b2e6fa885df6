/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Speed of the kernels of a CUDA device, against what its memory can do. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/tool_options.h"
#include "tools/cuda/cuda_report.h"

enum { EXIT_OK = 0, EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_NO_DEVICE = 3 };

static int say(int status, const char *sentence) {
  fprintf(stderr, "cuda_bench: %s\n", sentence);
  return status;
}

/* A minute of measuring should not end with a file that cannot be written. */
static bool can_write(const char *path) {
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!path || (file && fclose(file) == 0)) {
    return true;
  }
  fprintf(stderr, "cuda_bench: '%s' cannot be written: %s\n", path, strerror(errno));
  return false;
}

typedef bool (*printer)(const lcomm_gpu_results *results, FILE *file);

static bool write_file(const lcomm_gpu_results *results, const char *path, printer print) {
  if (!path) {
    return true;
  }
  FILE *file = fopen(path, "w");
  bool good = file != NULL && print(results, file);
  if (file && fclose(file) != 0) {
    good = false;
  }
  if (!good) {
    fprintf(stderr, "cuda_bench: '%s' is incomplete; is the disk full?\n", path);
  }
  return good;
}

/* What a case that hangs, or loses the device, leaves for whoever reads the files. */
static void write_files(const lcomm_gpu_results *results) {
  (void)write_file(results, results->options->json_path, lcomm_gpu_json);
  (void)write_file(results, results->options->csv_path, lcomm_gpu_csv);
}

static int run(const lcomm_gpu_options *options) {
  static lcomm_gpu_results results;
  char why[LCOMM_DEVICE_WHY_MAX] = "";
  const lcomm_device_table *table = lcomm_device_get(why);
  if (!table) {
    return say(EXIT_NO_DEVICE, why);
  }
  if (!lcomm_gpu_bench_run(options, table, write_files, &results)) {
    return say(EXIT_WRONG, results.why);
  }
  bool good = lcomm_gpu_print(&results, stdout);
  good = write_file(&results, options->json_path, lcomm_gpu_json) && good;
  good = write_file(&results, options->csv_path, lcomm_gpu_csv) && good;
  return good && lcomm_gpu_is_right(&results) ? EXIT_OK : EXIT_WRONG;
}

int main(int argc, char **argv) {
  lcomm_gpu_options options;
  char error[LCOMM_GPU_WHY_MAX];
  switch (lcomm_gpu_options_parse(argc, argv, &options, error)) {
  case LCOMM_GPU_HELP:
    lcomm_gpu_help();
    return EXIT_OK;
  case LCOMM_GPU_VERSION:
    tool_print_version("cuda_bench");
    return EXIT_OK;
  case LCOMM_GPU_USAGE:
    fprintf(stderr, "cuda_bench: %s; see cuda_bench --help\n", error);
    return EXIT_USAGE;
  case LCOMM_GPU_RUN:
    break;
  }
  if (options.list) {
    return lcomm_gpu_list(&options, stdout) ? EXIT_OK : EXIT_WRONG;
  }
  if (!can_write(options.json_path) || !can_write(options.csv_path)) {
    return EXIT_USAGE;
  }
  return run(&options);
}

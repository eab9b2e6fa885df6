/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Speed of the kernels of a CUDA device, against what its memory can do. */

#include <stdio.h>
#include <string.h>

#include "tools/common/tool_output.h"
#include "tools/cuda/cuda_report.h"

static const char program[] = "cuda_bench";

enum { EXIT_OK = 0, EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_NO_DEVICE = 3 };

static int say(int status, const char *sentence) {
  fprintf(stderr, "%s: %s\n", program, sentence);
  return status;
}

typedef bool (*printer)(const lcomm_gpu_results *results, FILE *file);

static bool write_file(const lcomm_gpu_results *results, const char *path, printer print) {
  if (!path) {
    return true;
  }
  FILE *file = tool_output_open(path);
  return tool_output_close(program, path, file, file && print(results, file));
}

/* Called after each case, so that the files have all results before a case that hangs. */
static void write_files(const lcomm_gpu_results *results) {
  (void)write_file(results, results->options->json_path, lcomm_gpu_json);
  (void)write_file(results, results->options->csv_path, lcomm_gpu_csv);
}

static int run(const lcomm_gpu_options *options) {
  static lcomm_gpu_results results;
  lcomm_why why;
  const lcomm_device_table *table = lcomm_device_get(&why);
  if (!table) {
    return say(EXIT_NO_DEVICE, why.text);
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
  char error[TOOL_ERROR_MAX];
  tool_parse parse = lcomm_gpu_options_parse(argc, argv, &options, error);
  if (parse != TOOL_RUN) {
    return tool_answer(program, parse, lcomm_gpu_help, error);
  }
  if (options.list) {
    return lcomm_gpu_list(&options, stdout) ? EXIT_OK : EXIT_WRONG;
  }
  if (!tool_output_check(options.json_path, error) || !tool_output_check(options.csv_path, error)) {
    return say(EXIT_USAGE, error);
  }
  return run(&options);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Accuracy and speed of gradient codecs on given values: what each one costs
 * and what it does to a gradient. */

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tools/codec/codec_csv.h"
#include "tools/codec/codec_export.h"
#include "tools/codec/codec_feedback.h"
#include "tools/codec/codec_json.h"
#include "tools/codec/codec_lowrank.h"
#include "tools/codec/codec_plot.h"
#include "tools/codec/codec_report.h"
#include "tools/codec/codec_speed.h"
#include "tools/codec/codec_survey.h"
#include "tools/common/tool_output.h"
#include "tools/common/tool_timing.h"

static const char program[] = "codec_bench";

enum { EXIT_OK = 0, EXIT_BROKEN = 1, EXIT_USAGE = 2 };

static int say(int status, const char *sentence) {
  fprintf(stderr, "%s: %s\n", program, sentence);
  return status;
}

static bool is_possible(const lcomm_bench_options *options, char *error) {
  size_t processors = tool_timing_processors();
  if (options->threads > processors) {
    snprintf(error, TOOL_ERROR_MAX,
             "--threads %llu: only %zu processors may be used here, and each thread needs its own",
             (unsigned long long)options->threads, processors);
    return false;
  }
  if (options->files.plot_path && !lcomm_plot_available()) {
    snprintf(error, TOOL_ERROR_MAX,
             "--plot needs gnuplot, which is not in PATH (Debian: gnuplot-nox)");
    return false;
  }
  return tool_output_check(options->files.json_path, error) &&
         tool_output_check(options->files.csv_path, error) &&
         tool_output_check(options->files.plot_path, error);
}

static lcomm_status measure(lcomm_results *results) {
  const lcomm_bench_options *options = results->options;
  tool_progress progress =
      tool_progress_begin((options->quality ? lcomm_survey_units(results) : 0) +
                          (options->steps > 0 ? lcomm_feedback_units(results) : 0) +
                          (options->speed ? lcomm_speed_units(results) : 0));
  lcomm_status status = LCOMM_OK;
  if (options->quality) {
    status = lcomm_survey_run(results, &progress);
  }
  if (status == LCOMM_OK && options->steps > 0) {
    status = lcomm_feedback_run(results, &progress);
  }
  if (status == LCOMM_OK && options->speed) {
    status = lcomm_speed_run(results, &progress);
  }
  if (status == LCOMM_OK && options->bandwidth > 0.0) {
    lcomm_results_predict(results);
  }
  tool_progress_end(&progress);
  return status;
}

typedef bool (*printer)(const lcomm_results *results, FILE *file);

static bool write_file(const lcomm_results *results, const char *path, printer print) {
  if (!path) {
    return true;
  }
  FILE *file = tool_output_open(path);
  return tool_output_close(program, path, file, file && print(results, file));
}

static int publish(const lcomm_results *results) {
  const lcomm_bench_options *options = results->options;
  bool good = lcomm_report_print(results, stdout);
  good = write_file(results, options->files.json_path, lcomm_json_print) && good;
  good = write_file(results, options->files.csv_path, lcomm_csv_print) && good;
  if (options->files.plot_path && !lcomm_plot_draw(results, options->files.plot_path)) {
    fprintf(stderr, "codec_bench: gnuplot could not draw '%s'\n", options->files.plot_path);
    good = false;
  }
  for (size_t i = 0; i < options->codec_count; i++) {
    good = good && results->codecs[i].refusal[0] == '\0';
  }
  return good ? EXIT_OK : EXIT_BROKEN;
}

static int say_status(lcomm_status status) {
  return say(EXIT_BROKEN,
             status == LCOMM_ERR_MEMORY
                 ? "there is not enough memory; a smaller --size or fewer --threads need less"
                 : lcomm_status_string(status));
}

static int run(const lcomm_bench_options *options, const lcomm_dataset *dataset) {
  lcomm_results results;
  lcomm_status status = lcomm_results_create(options, dataset, &results);
  if (status == LCOMM_OK) {
    status = measure(&results);
  }
  int result = status == LCOMM_OK ? publish(&results) : say_status(status);
  lcomm_results_free(&results);
  return result;
}

static int run_matrix(const lcomm_bench_options *options) {
  static lcomm_lowrank_speed speeds[LCOMM_BENCH_TABLES_MAX];
  lcomm_status status = lcomm_lowrank_measure(options, speeds);
  if (status != LCOMM_OK) {
    return say_status(status);
  }
  const char *path = options->files.csv_path;
  bool good = lcomm_lowrank_print(options, speeds, stdout);
  if (path) {
    FILE *file = tool_output_open(path);
    good = tool_output_close(program, path, file,
                             file && lcomm_lowrank_print_csv(options, speeds, file)) &&
           good;
  }
  return good ? EXIT_OK : EXIT_BROKEN;
}

static int run_matrix_steps(const lcomm_bench_options *options, const lcomm_dataset *dataset) {
  lcomm_lowrank_errors errors;
  lcomm_status status = lcomm_lowrank_run_steps(options, dataset, &errors);
  if (status != LCOMM_OK) {
    return say_status(status);
  }
  const char *path = options->files.csv_path;
  bool good = lcomm_lowrank_print_errors(options, &errors, stdout);
  if (path) {
    FILE *file = tool_output_open(path);
    good = tool_output_close(program, path, file,
                             file && lcomm_lowrank_print_errors_csv(options, &errors, file)) &&
           good;
  }
  return good ? EXIT_OK : EXIT_BROKEN;
}

static int export(const lcomm_bench_options *options, const lcomm_dataset *dataset) {
  char error[TOOL_ERROR_MAX];
  uint64_t files = 0;
  if (!lcomm_export(dataset, options->export_path, &files, error)) {
    return say(EXIT_BROKEN, error);
  }
  printf("%llu files in %s\n", (unsigned long long)files, options->export_path);
  return EXIT_OK;
}

static int measure_dataset(const lcomm_bench_options *options, const lcomm_dataset *dataset) {
  if (options->matrix.rank > 0) {
    return run_matrix_steps(options, dataset);
  }
  return options->export_path ? export(options, dataset) : run(options, dataset);
}

int main(int argc, char **argv) {
  static lcomm_bench_options options;
  char error[TOOL_ERROR_MAX];
  signal(SIGPIPE, SIG_IGN); /* gnuplot may go away */
  tool_parse parse = lcomm_bench_options_parse(argc, argv, &options, error);
  if (parse != TOOL_RUN) {
    return tool_answer(program, parse, lcomm_bench_help, error);
  }
  if (!is_possible(&options, error)) {
    return say(EXIT_USAGE, error);
  }
  tool_pages_choose(options.pages);
  if (options.matrix.rows > 0) {
    return run_matrix(&options);
  }
  lcomm_dataset dataset;
  if (lcomm_dataset_open(&options, &dataset, error) != LCOMM_OK) {
    return say(EXIT_USAGE, error);
  }
  for (size_t i = 0; i < dataset.unreadable_count; i++) {
    fprintf(stderr, "codec_bench: left out: %s\n", dataset.unreadable[i]);
  }
  int result = measure_dataset(&options, &dataset);
  lcomm_dataset_close(&dataset);
  return result;
}

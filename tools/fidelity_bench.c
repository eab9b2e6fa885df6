/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* fidelity_bench: does training under a policy come to the accuracy of exact sums, and with how
 * many bytes? A grid of trainings, each with all of its workers in one process. */

#include <stdio.h>
#include <stdlib.h>

#include "tools/common/tool_output.h"
#include "tools/common/tool_table.h"
#include "tools/fidelity/fidelity_jobs.h"
#include "tools/fidelity/fidelity_overflow.h"
#include "tools/fidelity/fidelity_plot.h"
#include "tools/fidelity/fidelity_table.h"
#include "trainer/train_model.h"

enum { FAILED = 1, TROUBLE = 2, DATA_SEED = 1 };

static const char program[] = "fidelity_bench";

/* OpenBLAS has no header of its own everywhere; cblas.h does not name it. */
void openblas_set_num_threads(int threads);

static int complain(int status, const char *sentence) {
  fprintf(stderr, "%s: %s\n", program, sentence);
  return status;
}

static int show(const fidelity_options *options, const fidelity_store *store) {
  size_t count = fidelity_case_count(&options->grid);
  fidelity_summary *all = calloc(count, sizeof *all);
  if (!all) {
    return complain(TROUBLE, "no memory for the table");
  }
  for (size_t i = 0; i < count; i++) {
    fidelity_summarise(&options->grid, i, store, &all[i]);
  }
  int status = 0;
  bool colours = tool_table_colours(stdout);
  if (!fidelity_table_print(all, count, colours, stdout) ||
      !fidelity_overflow_print(&options->grid, store, colours, stdout)) {
    status = complain(TROUBLE, "no memory for the table");
  }
  if (options->csv) {
    FILE *file = tool_output_open(options->csv);
    if (file) {
      fidelity_table_csv(all, count, file);
    }
    status =
        tool_output_close(program, options->csv, file, file && !ferror(file)) ? status : TROUBLE;
  }
  if (options->plot && !fidelity_plot_draw(all, count, options->grid.preset_count, options->plot)) {
    status = complain(TROUBLE, "gnuplot could not draw the pictures; is it installed?");
  }
  free(all);
  return status;
}

/* Returns the exit status. The results are read again after the trainings. */
static int train_and_show(fidelity_options *options, const task *data) {
  fidelity_store store;
  failure why = {0};
  size_t failed = 0;
  if (fidelity_store_read(options->results, &store, &why)) {
    return complain(TROUBLE, why.text);
  }
  if (options->train) {
    failed = fidelity_jobs_run(options, &store, data);
    fidelity_store_free(&store);
    if (fidelity_store_read(options->results, &store, &why)) {
      return complain(TROUBLE, why.text);
    }
  }
  int status = show(options, &store);
  fidelity_store_free(&store);
  if (failed > 0) {
    fprintf(stderr, "%s: %zu trainings failed\n", program, failed);
  }
  return status == 0 && failed > 0 ? FAILED : status;
}

/* All models of a grid learn from the same; images that are not used do not count in the hash. */
static int load(fidelity_options *options, task *data, failure *why) {
  fidelity_training *training = &options->grid.training;
  if (task_load(model_context(options->grid.models[0]), options->data, DATA_SEED, data, why)) {
    return -1;
  }
  dataset_limit(&data->images, training->images);
  task_limit(data, training->images);
  training->images = data->train_count;
  training->data_hash = task_hash(data);
  fprintf(stderr, "%s: %u %s of %s\n", program, data->train_count, task_samples(data),
          task_where(data));
  return 0;
}

static int run(fidelity_options *options) {
  task data;
  failure why = {0};
  if (load(options, &data, &why)) {
    return complain(TROUBLE, why.text);
  }
  openblas_set_num_threads(1); /* the trainings are the parallelism */
  int status = train_and_show(options, &data);
  task_free(&data);
  return status;
}

int main(int argc, char **argv) {
  static fidelity_options options;
  char error[TOOL_ERROR_MAX] = "";
  tool_parse parse = fidelity_options_parse(argc, argv, &options, error);
  if (parse != TOOL_RUN) {
    return tool_answer(program, parse, fidelity_options_help, error);
  }
  if (!tool_output_check(options.csv, error)) {
    return complain(TROUBLE, error);
  }
  return run(&options);
}

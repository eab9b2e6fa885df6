/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_experiment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fuzz_promise.h"
#include "tools/experiment/experiment_matrix.h"
#include "tools/experiment/experiment_result.h"
#include "tools/experiment/experiment_simulation.h"
#include "tools/simulation/simulate_workload.h"

static bool is_printable(const char *text) {
  for (; *text != '\0'; text++) {
    if ((unsigned char)*text < ' ' || *text == 0x7f) {
      return false;
    }
  }
  return true;
}

static void check_workload(const experiment_workload *run) {
  fuzz_require(run->program[0] != '\0' && is_printable(run->program) && is_printable(run->options),
               "a run has a program that can be shown");
  fuzz_require(run->policies.count >= 1 && run->rates.count >= 1 && run->models.count >= 1 &&
                   run->delays_ms.count >= 1 && run->seeds.count >= 1 && run->world_count >= 1,
               "a list has members");
  fuzz_require(run->policies.count <= EXPERIMENT_LIST_MAX &&
                   run->world_count <= EXPERIMENT_LIST_MAX,
               "a list has its end");
  for (size_t i = 0; i < run->world_count; i++) {
    fuzz_require(run->worlds[i].hosts >= 1 && run->worlds[i].hosts <= 64 &&
                     run->worlds[i].ranks >= 1,
                 "a world has hosts and ranks");
  }
  for (size_t i = 0; i < run->rates.count; i++) {
    fuzz_require((run->rates.words[i][0] != '\0') == (run->where == EXPERIMENT_CLUSTER),
                 "emulated links have rates, and no others");
  }
}

static void check_cases(const experiment_file *file) {
  size_t count = 0;
  experiment_case *cases = experiment_matrix_make(file, &count);
  fuzz_require(cases && count >= 1 && count <= EXPERIMENT_CASES_MAX, "there are runs");
  for (size_t i = 0; i < count; i++) {
    fuzz_require(cases[i].name[0] != '\0' && !strchr(cases[i].name, '/') &&
                     strlen(cases[i].name) + 1 < EXPERIMENT_CASE_NAME_MAX,
                 "a run names a folder");
  }
  free(cases);
}

static void check_result(const uint8_t *data, size_t size) {
  experiment_result *made = fuzz_allocate(sizeof *made);
  char *text = fuzz_allocate(size + 1);
  memset(made, 0, sizeof *made);
  if (size > 0) {
    memcpy(text, data, size);
  }
  text[size] = '\0';
  bool any = experiment_result_parse(text, made);
  fuzz_require(any == (made->epoch_count + made->row_count > 0), "results are there or not");
  for (size_t i = 0; i < made->row_count; i++) {
    fuzz_require(isfinite(made->rows[i].median_s) && made->rows[i].median_s > 0.0,
                 "a time is a time");
  }
  fuzz_require(is_printable(made->transport) && is_printable(made->interface),
               "an origin can be shown");
  free(text);
  free(made);
}

/* What becomes a workload is one that can be simulated, or is refused with a sentence. */
static void check_simulation(const uint8_t *data, size_t size) {
  char why[SIMULATE_WHY_MAX] = "";
  simulate_workload workload;
  char *log = fuzz_allocate(size + 1);
  if (size > 0) {
    memcpy(log, data, size);
  }
  log[size] = '\0';
  char *made = experiment_simulation_workload(log, 0.1);
  if (made && simulate_workload_parse(made, strlen(made), &workload, why)) {
    fuzz_require(workload.count > 0 && workload.parameters > 0, "there are tensors");
    simulate_workload_free(&workload);
  } else {
    fuzz_require(!made || why[0] != '\0', "a refusal has a sentence");
  }
  free(made);
  free(log);
}

void lcomm_fuzz_experiment(const uint8_t *data, size_t size) {
  char error[EXPERIMENT_ERROR_MAX];
  experiment_file *file = fuzz_allocate(sizeof *file);
  uint8_t *bytes = fuzz_copy(data, size);
  bool good = experiment_file_parse((const char *)bytes, size, file, error);
  fuzz_require(strnlen(error, sizeof error) < sizeof error, "a sentence ends");
  fuzz_require(good == (error[0] == '\0'), "a refusal has a sentence");
  fuzz_require(good || strncmp(error, "line ", 5) == 0, "a sentence names the line");
  fuzz_require(is_printable(error), "a sentence can be shown");
  for (size_t i = 0; good && i < file->workload_count; i++) {
    check_workload(&file->workloads[i]);
  }
  if (good) {
    check_cases(file);
  }
  free(bytes);
  free(file);
  check_result(data, size);
  check_simulation(data, size);
}

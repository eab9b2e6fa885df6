/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TOOLS_FIDELITY_RESULTS_H
#define LCOMM_TESTS_TOOLS_FIDELITY_RESULTS_H

/* A grid of fidelity_bench and its file of results, for tests that fill it with outcomes of
 * trainings that never were. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/temp_folder.h"
#include "tests/support/written_text.h"
#include "tools/fidelity/fidelity_options.h"
#include "tools/fidelity/fidelity_store.h"

/* The options of a command line that ends with NULL. */
static inline fidelity_options parse(const char *const *words, tool_parse expected) {
  static char error[TOOL_ERROR_MAX];
  static fidelity_options made;
  char *argv[24] = {"fidelity_bench"};
  int argc = 1;
  for (; words[argc - 1]; argc++) {
    argv[argc] = (char *)words[argc - 1];
  }
  assert_int_equal(fidelity_options_parse(argc, argv, &made, error), expected);
  return made;
}

/* Two worlds; fp32, a and b; three seeds. */
#define SMALL_GRID                                                                                 \
  "--models", "mlp", "--optimizers", "sgd", "--worlds", "2x1,4x1", "--preset", "a=net=int8",       \
      "--preset", "b=net=int4", "--seeds", "3"

static const char *const small_grid[] = {SMALL_GRID, NULL};

/* -------------------------------------------------------------------- file */

/* In the folder that is the test's state. */
static inline const char *path_in(void **state) {
  static char path[320];
  snprintf(path, sizeof path, "%s/results.jsonl", ((folder *)*state)->path);
  return path;
}

/* A cell was trained. */
static inline void put(const char *path, const fidelity_grid *grid, size_t cell, double accuracy,
                       double bytes) {
  fidelity_cell at = fidelity_cell_at(grid, cell);
  failure why = {0};
  fidelity_outcome outcome = {.accuracy = accuracy,
                              .bytes = bytes,
                              .steps = 10,
                              .seconds = 1,
                              .processor_s = 2,
                              .curve = {2.0f, (float)accuracy},
                              .curve_count = 2};
  assert_int_equal(fidelity_store_append(path, &at, &outcome, &why), 0);
}

static inline fidelity_store read_store(const char *path) {
  fidelity_store store;
  failure why = {0};
  assert_int_equal(fidelity_store_read(path, &store, &why), 0);
  return store;
}

/* Cells of 2x1 in the small grid: fp32 0..2, a 3..5, b 6..8. fp32 deviates by one point. */
static inline void fill_first_world(const char *path, const fidelity_grid *grid) {
  static const double accuracies[] = {0.89, 0.90, 0.91, 0.885, 0.895, 0.91, 0.88, 0.88, 0.89};
  for (size_t i = 0; i < 9; i++) {
    put(path, grid, i, accuracies[i], i < 3 ? 800.0 : i < 6 ? 200.0 : 100.0);
  }
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TOOLS_FIDELITY_TRAINED_H
#define LCOMM_TESTS_TOOLS_FIDELITY_TRAINED_H

/* Trainings of fidelity_bench on the built-in images. */

#include "tests/support/unit_tests.h"

#include <stdio.h>

#include "tools/fidelity/fidelity_train.h"

/* So many to train on, the same ones at each call, and to test on. */
static inline task shapes(uint32_t images, uint32_t tested) {
  static task data;
  failure why = {0};
  if (data.train_count == 0) {
    assert_int_equal(task_load(0, DATASET_BUILT_IN, 1, &data, &why), 0);
    task_limit(&data, images);
    data.test_count = tested;
  }
  return data;
}

static inline fidelity_outcome outcome_of(const fidelity_cell *cell, const task *data) {
  fidelity_outcome made;
  failure why = {0};
  if (fidelity_train(cell, data, &made, &why)) {
    fail_msg("%s", why.text);
  }
  return made;
}

/* An mlp by the policy; `cell` says how else, and has no preset. */
static inline fidelity_outcome outcome_by(const char *policy, fidelity_cell cell,
                                          const task *data) {
  fidelity_preset preset = {.name = "tested"};
  snprintf(preset.policy, sizeof preset.policy, "%s", policy);
  cell.of.model = "mlp";
  cell.of.preset = &preset;
  return outcome_of(&cell, data);
}

#endif

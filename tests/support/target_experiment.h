/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_EXPERIMENT_H
#define LCOMM_TESTS_SUPPORT_TARGET_EXPERIMENT_H

/* Fuzz targets for what experiments read, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* The bytes as the file of an experiment, and as what a program of it printed. */
void lcomm_fuzz_experiment(const uint8_t *data, size_t size);

#endif

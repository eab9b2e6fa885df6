/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_SETTINGS_H
#define LCOMM_TESTS_SUPPORT_TARGET_SETTINGS_H

/* Fuzz target for the variables LCOMM_*, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* Variables, each a byte that says which one, and a value up to a zero. One of the bytes is for
 * a name of a variable, another for the name of a log file. */
void lcomm_fuzz_settings(const uint8_t *data, size_t size);

#endif

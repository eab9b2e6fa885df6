/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_LAUNCHER_H
#define LCOMM_TESTS_SUPPORT_TARGET_LAUNCHER_H

/* Fuzz target for the variables by which launchers tell a process its place, as in
 * fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* Variables, each a byte that says which one, and a value up to a zero. */
void lcomm_fuzz_launcher(const uint8_t *data, size_t size);

#endif

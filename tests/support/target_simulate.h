/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_SIMULATE_H
#define LCOMM_TESTS_SUPPORT_TARGET_SIMULATE_H

/* The fuzz target of what the simulator reads, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* Byte 0 says which reader gets the rest: speeds, workloads, traces or a command line. */
void lcomm_fuzz_simulate(const uint8_t *data, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_TRACE_H
#define LCOMM_TESTS_SUPPORT_TARGET_TRACE_H

/* The fuzz target of trace_merge, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* Byte 0: odd for lines that follow a good beginning, even for a whole file. */
void lcomm_fuzz_trace(const uint8_t *data, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_MEMORY_HANDLE_H
#define LCOMM_TESTS_SUPPORT_TARGET_MEMORY_HANDLE_H

/* Fuzz target for what a peer says of memory on its device, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* Eight bytes: the payload's size; then a memory handle, then another piece of memory. */
void lcomm_fuzz_memory_handle(const uint8_t *data, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_STORE_H
#define LCOMM_TESTS_SUPPORT_TARGET_STORE_H

/* Fuzz target for what arrives at a TCP store and from it, as in
 * fuzz_targets.h: the bytes are read as a greeting, as a run of frames, and as what survivors tell
 * each other. */

#include <stddef.h>
#include <stdint.h>

void lcomm_fuzz_store(const uint8_t *data, size_t size);

#endif

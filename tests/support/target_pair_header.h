/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_PAIR_HEADER_H
#define LCOMM_TESTS_SUPPORT_TARGET_PAIR_HEADER_H

/* Fuzz target for what a message between two ranks begins with, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* The bytes of a peer. */
void lcomm_fuzz_pair_header(const uint8_t *data, size_t size);

#endif

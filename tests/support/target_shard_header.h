/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_SHARD_HEADER_H
#define LCOMM_TESTS_SUPPORT_TARGET_SHARD_HEADER_H

/* Fuzz target for what a contribution to a piece, and its result, begin with, as in
 * fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* A number of ranks, and the bytes of a peer. */
void lcomm_fuzz_shard_header(const uint8_t *data, size_t size);

#endif

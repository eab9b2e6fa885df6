/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_SPLIT_H
#define LCOMM_TESTS_SUPPORT_TARGET_SPLIT_H

/* Fuzz target for the meeting of a split, as in fuzz_targets.h: what the ranks of the
 * parent wish, and what those of a color send each other. */

#include <stddef.h>
#include <stdint.h>

/* Byte 0: ranks, byte 1: our own, byte 2: bytes that each member says; then the wishes
 * (8 bytes a rank), then how each message goes on (fuzz_comm.c). */
void lcomm_fuzz_split(const uint8_t *data, size_t size);

#endif

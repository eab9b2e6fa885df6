/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_IDX_H
#define LCOMM_TESTS_SUPPORT_TARGET_IDX_H

/* The fuzz target of the trainer's reader of IDX files, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* Byte 0: odd for images, even for labels; the rest: a file, compressed by
 * gzip or not. */
void lcomm_fuzz_idx(const uint8_t *data, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_FUZZ_TOPK_H
#define LCOMM_TESTS_SUPPORT_FUZZ_TOPK_H

/* The fuzz target of the sparse codec, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* Byte 0 and 1: base count, byte 2: parts, part and in bit 6 the variant, byte
 * 3: the number of outputs and the density of the encoder; the rest: a payload,
 * and once more as numbers to encode. */
void lcomm_fuzz_topk(const uint8_t *data, size_t size);

#endif

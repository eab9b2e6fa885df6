/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_TOPK_H
#define LCOMM_TESTS_SUPPORT_TARGET_TOPK_H

/* The fuzz targets of the sparse codec, as in fuzz_targets.h. They are two, because
 * an encoder goes over all elements several times, and payloads, which come from
 * peers, are to be tried in great numbers. */

#include <stddef.h>
#include <stdint.h>

/* Byte 0 and 1: base count, byte 2: parts, part and in bit 6 the variant, byte
 * 3: the number of outputs and the density of the encoder; the rest: a payload. */
void lcomm_fuzz_topk(const uint8_t *data, size_t size);

/* The same, with the rest as numbers to encode; byte 1 from 248 up: a long array. */
void lcomm_fuzz_topk_encode(const uint8_t *data, size_t size);

#endif

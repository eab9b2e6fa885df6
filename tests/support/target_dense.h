/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_DENSE_H
#define LCOMM_TESTS_SUPPORT_TARGET_DENSE_H

/* Fuzz targets of the dense codecs and of the kernels, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* Byte 0: the format, bytes 1 and 2: the count, byte 3: where a range begins;
 * the rest: a payload of that count, and once more as numbers to encode. */
void lcomm_fuzz_dense(const uint8_t *data, size_t size);

/* The same input, through every table of kernels that runs here: all give the
 * bytes of the scalar one. */
void lcomm_fuzz_kernels(const uint8_t *data, size_t size);

#endif

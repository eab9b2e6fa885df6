/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_LOSSLESS_H
#define LCOMM_TESTS_SUPPORT_TARGET_LOSSLESS_H

/* The fuzz target of the lossless stage, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* Byte 0: the format; bytes 1 and 2: count; byte 3: how much room there is for
 * the payload; the rest: a stream, and once more the bytes of a payload. */
void lcomm_fuzz_lossless(const uint8_t *data, size_t size);

#endif

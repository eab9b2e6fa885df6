/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_PAIR_FRAME_H
#define LCOMM_TESTS_SUPPORT_TARGET_PAIR_FRAME_H

#include <stddef.h>
#include <stdint.h>

/* One byte: the format that the receiver expects, its type and whether there are checksums; two:
 * how many elements; then the bytes of a peer. */
void lcomm_fuzz_pair_frame(const uint8_t *data, size_t size);

#endif

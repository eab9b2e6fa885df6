/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_SHM_H
#define LCOMM_TESTS_SUPPORT_TARGET_SHM_H

/* Fuzz target for what another process of the machine says and writes into shared
 * memory, as in fuzz_targets.h. The peer is this process itself: it offers what it
 * opens, but for what the input changes, and the input writes into the ring. */

#include <stddef.h>
#include <stdint.h>

/* Byte 0: how many changes of the peer's offer follow (offset, byte), and in bits 4 to
 * 6 its process number and its verdict; then events, see target_shm.c. */
void lcomm_fuzz_shm(const uint8_t *data, size_t size);

#endif

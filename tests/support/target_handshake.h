/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_HANDSHAKE_H
#define LCOMM_TESTS_SUPPORT_TARGET_HANDSHAKE_H

/* Fuzz target for what ranks say while a communicator is made, as in fuzz_targets.h:
 * their greetings, and whether they have links to all. */

#include <stddef.h>
#include <stdint.h>

/* Byte 0: ranks, byte 1: our own; then changes to what ranks would say of whom nothing
 * is wrong: rank (odd: also in the links' answers), two bytes of offset, one of size,
 * and so many bytes. */
void lcomm_fuzz_handshake(const uint8_t *data, size_t size);

#endif

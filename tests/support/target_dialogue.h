/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_DIALOGUE_H
#define LCOMM_TESTS_SUPPORT_TARGET_DIALOGUE_H

/* Fuzz target for the dialogues of a TCP store, as in fuzz_targets.h: over sockets whose
 * other end says what the input says, then no more. */

#include <stddef.h>
#include <stdint.h>

/* Byte 0: 0 visitors come to the meeting (target_dialogue.c: visit), 1 rank 0 answers an
 * allgather of ours, else ranks give us, rank 0, their parts: each two bytes of size and
 * so many bytes. Byte 1: bytes of a part, in a meeting whether it has failed. */
void lcomm_fuzz_dialogue(const uint8_t *data, size_t size);

#endif

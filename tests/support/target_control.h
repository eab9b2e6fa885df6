/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_CONTROL_H
#define LCOMM_TESTS_SUPPORT_TARGET_CONTROL_H

/* Fuzz target for control messages of peers, fingerprints among them, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* Byte 0: ranks, byte 1: our own, then events. An event begins with a byte: 0 an
 * operation begins here (target_control.c: operation), 1 a fingerprint comes, 2 a probe or an
 * answer to one, else a control message of the two bytes of size that follow. */
void lcomm_fuzz_control(const uint8_t *data, size_t size);

#endif

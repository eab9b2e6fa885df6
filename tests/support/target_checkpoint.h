/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_CHECKPOINT_H
#define LCOMM_TESTS_SUPPORT_TARGET_CHECKPOINT_H

/* The fuzz target of the trainer's reader of checkpoints, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* Byte 0: odd, and the sums are put right, so that what they protect is read, too; the rest: a
 * file. */
void lcomm_fuzz_checkpoint(const uint8_t *data, size_t size);

#endif

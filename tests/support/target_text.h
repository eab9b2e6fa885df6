/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_TEXT_H
#define LCOMM_TESTS_SUPPORT_TARGET_TEXT_H

/* The fuzz target of the trainer's reader of text, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* A file, compressed by gzip or not. */
void lcomm_fuzz_text(const uint8_t *data, size_t size);

#endif

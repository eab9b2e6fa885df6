/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_STATE_H
#define LCOMM_TESTS_SUPPORT_TARGET_STATE_H

/* Fuzz target for saved error-feedback states, as in fuzz_targets.h. Bytes are
 * read as they are, and with the size and the checksum that belong to them. */

#include <stddef.h>
#include <stdint.h>

void lcomm_fuzz_state(const uint8_t *data, size_t size);

#endif

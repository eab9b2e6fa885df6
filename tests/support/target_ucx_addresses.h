/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_UCX_ADDRESSES_H
#define LCOMM_TESTS_SUPPORT_TARGET_UCX_ADDRESSES_H

/* Fuzz target for the exchange of UCX's addresses, as in fuzz_targets.h. The
 * first byte, modulo 8, is the number of ranks less one; then come their labels,
 * then their addresses. */

#include <stddef.h>
#include <stdint.h>

void lcomm_fuzz_ucx_addresses(const uint8_t *data, size_t size);

#endif

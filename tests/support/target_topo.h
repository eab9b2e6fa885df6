/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_TOPO_H
#define LCOMM_TESTS_SUPPORT_TARGET_TOPO_H

#include <stddef.h>
#include <stdint.h>

/* The text form of a topology, and what peers say of their hosts and devices. */
void lcomm_fuzz_topo(const uint8_t *data, size_t size);

#endif

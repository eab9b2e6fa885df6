/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_INTERPOSER_H
#define LCOMM_TESTS_SUPPORT_TARGET_INTERPOSER_H

/* Fuzz target for what the MPI interposer reads, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* Byte 0: 0 changes of a handshake (two bytes of offset, one of size, so many bytes), 1
 * the same of a verdict, else a control file. */
void lcomm_fuzz_interposer(const uint8_t *data, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_NCCL_ID_H
#define LCOMM_TESTS_SUPPORT_TARGET_NCCL_ID_H

/* Fuzz target for ids of communicators that programs carry between ranks, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* The bytes of an ncclUniqueId; zeros where there are fewer. */
void lcomm_fuzz_nccl_id(const uint8_t *data, size_t size);

#endif

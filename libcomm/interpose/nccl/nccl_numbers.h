/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_NCCL_NUMBERS_H
#define LCOMM_INTERPOSE_NCCL_NUMBERS_H

/* Elements of NCCL's types as numbers of the host. Types must exist. */

#include <stdbool.h>
#include <stdint.h>

#include "libcomm/interpose/nccl/nccl_abi.h"

bool lcomm_nccl_is_float(ncclDataType_t type);
bool lcomm_nccl_is_signed(ncclDataType_t type);

/* Whole numbers, in 64 bits of two's complement; writing cuts to the type's bits. */
uint64_t lcomm_nccl_whole_read(ncclDataType_t type, const void *from);
void lcomm_nccl_whole_write(ncclDataType_t type, uint64_t value, void *to);

/* Floats. Writing rounds to the nearest number of the type, ties to even. Numbers beyond the
 * largest one become Inf, with 8 bits the largest one, as in CUDA's conversions; Inf stays Inf
 * where the type has it. */
double lcomm_nccl_float_read(ncclDataType_t type, const void *from);
void lcomm_nccl_float_write(ncclDataType_t type, double value, void *to);

#endif

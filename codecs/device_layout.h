/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_DEVICE_LAYOUT_H
#define LCOMM_CODECS_DEVICE_LAYOUT_H

/* What a payload is to the kernels of a device: one kind, and addresses. */

#include "codecs/codec.h"
#include "kernels/cuda.h"

/* The parts of a payload of `count` values in a dense format, by the arithmetic of
 * addresses alone: `payload` may lie in the memory of a device. Whoever encodes
 * with stochastic rounding adds the seed, which is 0 at first. */
void lcomm_device_layout(const lcomm_format *format, uint64_t count, uint8_t *payload,
                         lcomm_cuda_code *layout);

#endif

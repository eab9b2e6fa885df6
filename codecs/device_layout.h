/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_DEVICE_LAYOUT_H
#define LCOMM_CODECS_DEVICE_LAYOUT_H

/* The layout of a dense payload, as the kernels of a device take it: its kind, and the
 * addresses of its scales and codes. */

#include "codecs/codec.h"
#include "kernels/cuda.h"

/* The layout of a payload of `count` values in a dense format. Only addresses are
 * computed, so `payload` may lie in the memory of a device. layout->seed is 0; an
 * encoder with stochastic rounding sets it. */
void lcomm_device_layout(const lcomm_format *format, uint64_t count, uint8_t *payload,
                         lcomm_cuda_code *layout);

#endif

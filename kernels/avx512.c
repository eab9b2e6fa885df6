/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "kernels/avx512.h"

const lcomm_kernels lcomm_kernels_avx512 =
    LCOMM_KERNEL_TABLE(avx512, lcomm_avx512_f32_to_e4m3, lcomm_avx512_f32_to_e5m2);

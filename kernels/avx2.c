/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "kernels/avx2.h"

const lcomm_kernels lcomm_kernels_avx2 =
    LCOMM_KERNEL_TABLE(avx2, lcomm_avx2_f32_to_e4m3, lcomm_avx2_f32_to_e5m2);

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "kernels/scalar.h"

const lcomm_kernels lcomm_kernels_scalar =
    LCOMM_KERNEL_TABLE(scalar, lcomm_scalar_f32_to_e4m3, lcomm_scalar_f32_to_e5m2);

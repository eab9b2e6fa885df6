/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_AVX2_H
#define LCOMM_KERNELS_AVX2_H

/* The table for x86-64 processors with AVX2, F16C, BMI1, BMI2, LZCNT and
 * POPCNT, and the functions behind it; kernels.h says what they do. The files
 * named avx2* are compiled for these instructions, so nothing of them may run
 * before lcomm_kernels_runs() agreed.
 */

#include "kernels/isa_table.h"

extern const lcomm_kernels lcomm_kernels_avx2;

LCOMM_DECLARE_KERNELS(avx2);

#endif

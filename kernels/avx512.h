/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_AVX512_H
#define LCOMM_KERNELS_AVX512_H

/* The kernel tables for x86-64 with AVX-512; kernels.h says what the functions
 * do. lcomm_kernels_avx512 needs AVX512F, BW, DQ and VL (and AVX2, F16C, BMI2
 * and LZCNT, which every such processor has); lcomm_kernels_avx512_vbmi needs
 * AVX512_VBMI as well, and differs only where that is faster. */

#include "kernels/isa_table.h"

extern const lcomm_kernels lcomm_kernels_avx512;
extern const lcomm_kernels lcomm_kernels_avx512_vbmi;

LCOMM_DECLARE_KERNELS(avx512);

#endif

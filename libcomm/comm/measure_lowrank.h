/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_COMM_MEASURE_LOWRANK_H
#define LCOMM_COMM_MEASURE_LOWRANK_H

/* What the products of low rank cost: for net=auto, and for libcomm-info. */

#include "kernels/kernels.h"
#include "libcomm/topo/topo.h"

/* The speed of one core of this rank on a square matrix of a MiB, as lcomm_codec_cost_measure() has
 * it of codecs: encoding is what comes before the first sum, P = M Q, decoding all that follows it;
 * what a payload costs besides is what each matrix does. */
lcomm_codec_cost lcomm_lowrank_cost_measure(const lcomm_kernels *kernels, unsigned rank,
                                            double within_s);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_COMM_MEASURE_CODECS_H
#define LCOMM_COMM_MEASURE_CODECS_H

/* What codecs cost: for net=auto, and for libcomm-info, which shows what net=auto would measure. */

#include "codecs/codec.h"
#include "libcomm/topo/topo.h"

/* The speed of one codec on one core of this rank, on a chunk of values like those of a gradient;
 * some milliseconds: the best of three trials, of one alone once `within_s` is over. 0 where there
 * is no memory to try it. */
lcomm_codec_cost lcomm_codec_cost_measure(const lcomm_kernels *kernels, const lcomm_format *format,
                                          double within_s);

/* What so many values took. */
typedef struct lcomm_codec_trial {
  uint64_t count;
  double us;
} lcomm_codec_trial;

/* A line through the times of few and of many values; through the latter alone where others used
 * the processor while the former were tried. *each_us stays as it was then; without a time both do.
 */
void lcomm_codec_cost_fit(lcomm_codec_trial little, lcomm_codec_trial much, double *gb_s,
                          double *each_us);

#endif

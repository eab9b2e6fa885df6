/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_LOWRANK_H
#define LCOMM_TOOLS_CODEC_CODEC_LOWRANK_H

/* The time of one step of low rank on a matrix M, without the sums over ranks, in passes over M: a
 * pass is m += gradient, in turn with the step. */

#include <stdio.h>

#include "tools/codec/codec_options.h"
#include "tools/codec/codec_results.h"
#include "tools/common/tool_timing.h"

typedef enum lcomm_lowrank_part {
  LCOMM_LOWRANK_PROJECT,
  LCOMM_LOWRANK_ORTHONORMALISE,
  LCOMM_LOWRANK_PROJECT_BACK,
  LCOMM_LOWRANK_EXPAND,
  LCOMM_LOWRANK_PARTS
} lcomm_lowrank_part;

typedef struct lcomm_lowrank_speed {
  const lcomm_kernels *kernels;
  tool_spread part_s[LCOMM_LOWRANK_PARTS], step_s, pass_s;
  tool_spread passes; /* of the time of a step */
} lcomm_lowrank_speed;

/* One of each table of the options. MEMORY, SYSTEM. */
lcomm_status lcomm_lowrank_measure(const lcomm_bench_options *options, lcomm_lowrank_speed *speeds);

/* What is left of the error of low rank when many steps are applied one after the other, with
 * feedback, as codec_feedback.h has it for codecs: each source by itself, as one worker. Tensors
 * that are no matrices, or that do not gain, are exact. */
typedef struct lcomm_lowrank_errors {
  lcomm_steps first, all;     /* one step, all of them */
  uint64_t matrices, covered; /* of all sources, and their values */
} lcomm_lowrank_errors;

lcomm_status lcomm_lowrank_run_steps(const lcomm_bench_options *options,
                                     const lcomm_dataset *dataset, lcomm_lowrank_errors *errors);

/* Bytes of the matrix / bytes sent. */
double lcomm_lowrank_ratio(const lcomm_matrix_shape *matrix);

/* false when not all could be written. */
bool lcomm_lowrank_print(const lcomm_bench_options *options, const lcomm_lowrank_speed *speeds,
                         FILE *file);
bool lcomm_lowrank_print_csv(const lcomm_bench_options *options, const lcomm_lowrank_speed *speeds,
                             FILE *file);
bool lcomm_lowrank_print_errors(const lcomm_bench_options *options,
                                const lcomm_lowrank_errors *errors, FILE *file);
bool lcomm_lowrank_print_errors_csv(const lcomm_bench_options *options,
                                    const lcomm_lowrank_errors *errors, FILE *file);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_INFO_INFO_MATRIX_H
#define LCOMM_TOOLS_INFO_INFO_MATRIX_H

/* How a tensor with a shape would be summed: as it is, or by low rank as two factors. */

#include "libcomm/plan/auto_lowrank.h"
#include "tools/info/info_options.h"

enum { INFO_SUMS_MAX = 2 };

typedef struct info_matrix {
  char codec[64];              /* between nodes, as the policy says it */
  bool rated;                  /* net=auto decides whether it goes by low rank: */
  lcomm_lowrank_rating rating; /* so */
  int sums;                    /* 2 of low rank, else 1 */
  lcomm_plan_request requests[INFO_SUMS_MAX];
  lcomm_plan *plans[INFO_SUMS_MAX];
  uint64_t bytes, exact_bytes; /* between nodes, at most; of an exact sum */
} info_matrix;

/* The plans of o->rows x o->columns under the policy. The exit code: 0, or INFO_BAD_INPUT with a
 * sentence. Free with info_matrix_free in any case. */
int info_matrix_make(const info_options *o, const lcomm_policy *policy, const lcomm_topo *topo,
                     info_matrix *matrix);
void info_matrix_free(info_matrix *matrix);

/* All of it for people. The exit code likewise. */
int info_print_matrix(const info_options *o, const lcomm_policy *policy, const lcomm_topo *topo);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_INFO_INFO_MATRIX_H
#define LCOMM_TOOLS_INFO_INFO_MATRIX_H

/* How a tensor with a shape would be summed: as it is, or by low rank as two factors. */

#include "libcomm/plan/plan.h"
#include "tools/info/info_options.h"

/* The plans of o->rows x o->columns under the policy, and the bytes between nodes beside those of
 * an exact sum. The exit code: 0, or INFO_BAD_INPUT with a sentence. */
int info_print_matrix(const info_options *o, const lcomm_policy *policy, const lcomm_topo *topo);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_JUDGE_H
#define LCOMM_TOOLS_PERF_JUDGE_H

#include "tools/perf/pattern.h"
#include "tools/perf/world.h"

/* Compare the results of all ranks with each other, where they should be alike,
 * and with the exact one. Collective; the sum of what the ranks return is the
 * verdict. is_exact: differences from the exact result count as wrong. */
lcomm_perf_difference lcomm_perf_judge(const lcomm_perf_world *world,
                                       const lcomm_perf_pattern *pattern,
                                       const lcomm_perf_call *call, int is_exact,
                                       const void *result);

#endif

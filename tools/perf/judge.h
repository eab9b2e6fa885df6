/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_JUDGE_H
#define LCOMM_TOOLS_PERF_JUDGE_H

#include "tools/perf/pattern.h"

/* Compare the results of all ranks with each other and with the exact one.
 * Collective over all ranks; the sum of what the ranks return is the verdict.
 * is_exact: differences from the exact result count as wrong. */
perf_difference perf_judge(const perf_pattern *pattern, lcomm_op op, int is_exact,
                           const void *buffer, uint64_t count);

#endif

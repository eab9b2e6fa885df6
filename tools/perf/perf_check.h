/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PERF_CHECK_H
#define LCOMM_TOOLS_PERF_PERF_CHECK_H

#include "tools/perf/perf_pattern.h"
#include "tools/perf/perf_world.h"

/* Compare the results of all ranks with each other, where they should be alike,
 * and with the exact one. Collective; the sum of what the ranks return is the
 * verdict. is_exact: differences from the exact result count as wrong. */
lcomm_perf_difference lcomm_perf_check_result(const lcomm_perf_world *world,
                                              const lcomm_perf_pattern *pattern,
                                              const lcomm_perf_call *call, int is_exact,
                                              const void *result);

#endif

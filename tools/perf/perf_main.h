/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PERF_MAIN_H
#define LCOMM_TOOLS_PERF_PERF_MAIN_H

#include "tools/perf/perf_collective.h"

/* The whole program that measures one collective. Returns its exit status. */
int lcomm_perf_main(int argc, char **argv, lcomm_perf_kind kind);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_REPORT_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_REPORT_H

/* What a study found: a table and verdicts for people, JSON for programs. */

#include "tools/simulation/simulate_study.h"

/* false: no memory, or the file took not everything. */
bool simulate_report_print(const simulate_study *study, FILE *file, bool colours);
bool simulate_report_json(const simulate_study *study, int argc, char **argv, FILE *file);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_FIDELITY_FIDELITY_PRESET_H
#define LCOMM_TOOLS_FIDELITY_FIDELITY_PRESET_H

/* Presets of a grid: those that have a name of their own here, and those of a command line. */

#include "tools/fidelity/fidelity_case.h"

/* fp32: exact sums, with which all others are compared. */
fidelity_preset fidelity_preset_reference(void);

/* All that are known, after those that the grid has. */
void fidelity_preset_add_known(fidelity_grid *grid);

/* NAME of one that is known, or NAME=POLICY. Writes *made on success only. */
bool fidelity_preset_read(const char *text, fidelity_preset *made);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_FIDELITY_FIDELITY_TABLE_H
#define LCOMM_TOOLS_FIDELITY_FIDELITY_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/fidelity/fidelity_summary.h"

/* One row for each case that has a result. false: memory ended. */
bool fidelity_table_print(const fidelity_summary *all, size_t count, bool colours, FILE *file);

/* The same for programs, with a line of names. Accuracies in percent, bytes of all nodes. */
void fidelity_table_csv(const fidelity_summary *all, size_t count, FILE *file);

#endif

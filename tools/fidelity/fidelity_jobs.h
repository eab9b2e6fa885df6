/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_FIDELITY_FIDELITY_JOBS_H
#define LCOMM_TOOLS_FIDELITY_FIDELITY_JOBS_H

#include "tools/fidelity/fidelity_options.h"
#include "tools/fidelity/fidelity_store.h"

/* Train the cells of the grid that are not in the store, each in a child process that adds its line
 * to the file of results, some at a time, with a bar on a terminal. This process must not have used
 * a communicator. Returns how many failed; children say why on standard error. */
size_t fidelity_jobs_run(const fidelity_options *options, const fidelity_store *store,
                         const task *data);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_COMMIT_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_COMMIT_H

/* The commit that this program was built from, as tools/build/revision says. */
const char *simulate_commit(void);

#endif

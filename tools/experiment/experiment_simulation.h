/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_SIMULATION_H
#define LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_SIMULATION_H

/* What a simulation says of the same runs, beside what was measured (tools/simulation). Runs over
 * emulated links can be simulated: their rates, delays and processors are known. Of trainings the
 * computation is the measured one, which no simulation can know; of collectives nothing is. */

#include "tools/experiment/experiment_group.h"

/* Simulate the groups of all places that can be, and compare with exact. Leaves the files that the
 * simulations read in `folder`. */
void experiment_groups_simulate(experiment_groups *of, const char *folder);

/* The tensors of a trainer's log, as simulate --workload reads them, with a computation of so many
 * seconds: a third of it is the forward pass, the rest lies on the tensors as their elements do.
 * NULL: the log names none. To be freed. */
char *experiment_simulation_workload(char *log, double compute_s);

#endif

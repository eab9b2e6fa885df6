/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_FIDELITY_FIDELITY_OVERFLOW_H
#define LCOMM_TOOLS_FIDELITY_FIDELITY_OVERFLOW_H

/* A step whose loss scale is too large: all gradients are multiplied by one factor, and one value
 * of one worker is Inf. The training skips the optimiser's step, as those with a loss scaler do.
 * What is left of it in the residuals decides whether the training recovers. It is the step in the
 * middle of the training. */

#include <stdio.h>

#include "tools/fidelity/fidelity_store.h"
#include "tools/fidelity/fidelity_summary.h"
#include "tools/fidelity/fidelity_world.h"

/* Behind each preset of the grid, whose factor is set, one that is the same but for such a step.
 * False when there is no room for them. */
bool fidelity_overflow_add(fidelity_grid *grid);

/* Is this step of a training of so many the one? */
bool fidelity_overflow_is_due(const fidelity_case *of, uint64_t number, uint64_t steps);

/* Spoil what the workers have in `values`; were the results that they got spoilt? */
void fidelity_overflow_spoil(fidelity_world *world, double factor);
bool fidelity_overflow_is_lost(const fidelity_world *world);

/* The accuracy with such a step against that without, at equal seeds; nothing for a grid without.
 * False when memory is short. */
bool fidelity_overflow_print(const fidelity_grid *grid, const fidelity_store *store, bool colours,
                             FILE *file);

#endif

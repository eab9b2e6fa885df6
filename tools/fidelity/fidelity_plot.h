/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_FIDELITY_FIDELITY_PLOT_H
#define LCOMM_TOOLS_FIDELITY_FIDELITY_PLOT_H

/* Pictures by gnuplot, with a panel for each model, optimiser and world: accuracy against the bytes
 * of a step, over the band of the reference; the loss of the training images, with the band of one
 * standard deviation of the seeds. */

#include <stdbool.h>
#include <stdio.h>

#include "tools/fidelity/fidelity_summary.h"

/* `all` are those of the cases of a grid, `group` presets in each place of it. Draws
 * PREFIX-accuracy.svg and PREFIX-loss.svg; false when gnuplot failed. */
bool fidelity_plot_draw(const fidelity_summary *all, size_t count, size_t group,
                        const char *prefix);

/* The scripts that do it. */
void fidelity_plot_accuracy(const fidelity_summary *all, size_t count, size_t group,
                            const char *path, FILE *script);
void fidelity_plot_loss(const fidelity_summary *all, size_t count, size_t group, const char *path,
                        FILE *script);

#endif

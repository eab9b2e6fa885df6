/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_PLOT_H
#define TRAINER_TRAIN_PLOT_H

#include <stdint.h>
#include <stdio.h>

#include "trainer/train_peers.h"

/* A picture of a run, drawn by gnuplot when it ends: loss over the steps, and what the test said
 * after each epoch. All functions accept a plot that is NULL. */

typedef struct run_plot run_plot;

/* `figure` is what plot_test() is told, in words, such as "test accuracy, %". Both texts must live
 * as long as the plot. Returns 0 and the plot, NULL without a path, or -1 with `why` if the file
 * cannot be written or there is no gnuplot. */
int plot_open(const char *path, const char *figure, run_plot **made, failure *why);

/* The mean loss of the `done` steps of the epoch so far, after `step` steps of the run. The point
 * is the mean since the point before. */
void plot_loss(run_plot *self, uint64_t step, uint64_t done, double mean);
void plot_test(run_plot *self, uint64_t step, double figure);

/* What gnuplot is told; nothing without a point. */
void plot_script(const run_plot *self, FILE *script);

/* Draw. Returns -1 with `why` if it could not be drawn. */
int plot_close(run_plot *self, failure *why);

#endif

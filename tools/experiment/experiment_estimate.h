/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_ESTIMATE_H
#define LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_ESTIMATE_H

/* How long a run takes, before it has run: for a progress bar and for "this takes 4 minutes", and
 * never for a result. What the links carry is computed; what processors take is assumed, and
 * corrected by the runs that are over. */

#include "tools/experiment/experiment_matrix.h"

/* Seconds, at most `limit_s`. */
double experiment_estimate(const experiment_case *of, double limit_s);

/* "3 min", "1 h 20 min", "40 s". Returns text. */
const char *experiment_show_time(double seconds, char *text, size_t size);

/* The number behind an option of a command line ("--epochs "), or what it is without. */
double experiment_option_number(const char *options, const char *name, double otherwise);

#endif

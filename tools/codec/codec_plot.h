/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_PLOT_H
#define LCOMM_TOOLS_CODEC_CODEC_PLOT_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/codec/codec_results.h"

/* Is there a gnuplot in PATH? */
bool lcomm_plot_available(void);

/* Draw the results into a .png or .svg file by gnuplot: bits per value against
 * NMSE, and, when speed was measured, compression ratio against GB/s of the
 * last kernel table at the largest size. false when gnuplot failed. */
bool lcomm_plot_draw(const lcomm_results *results, const char *path);

/* The script that does it. */
void lcomm_plot_script(const lcomm_results *results, const char *path, FILE *script);

#endif

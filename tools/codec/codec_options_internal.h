/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_OPTIONS_INTERNAL_H
#define LCOMM_TOOLS_CODEC_CODEC_OPTIONS_INTERNAL_H

/* Between reading the command line and understanding its values. Functions that
 * return false have written a sentence. line->options is an lcomm_bench_options. */

#include "tools/codec/codec_options.h"

bool lcomm_bench_add_codec(tool_command_line *line, const char *text);
bool lcomm_bench_add_policy(tool_command_line *line, const char *text);
bool lcomm_bench_add_default_codecs(tool_command_line *line);

/* The table that the library would take. */
void lcomm_bench_add_fastest_table(lcomm_bench_options *options);

/* Those of the list, or "all" that run here. */
bool lcomm_bench_set_tables(tool_command_line *line, const char *list);

bool lcomm_bench_set_sizes(tool_command_line *line, const char *list);
bool lcomm_bench_set_pages(tool_command_line *line, const char *name);
bool lcomm_bench_set_synthetic(tool_command_line *line, const char *text);
bool lcomm_bench_set_seed(tool_command_line *line, const char *text);

/* Both words after --predict; the second one is taken from what follows. */
bool lcomm_bench_set_prediction(tool_command_line *line, const char *bandwidth);
bool lcomm_bench_set_baseline(tool_command_line *line, const char *name);
bool lcomm_bench_set_matrix(tool_command_line *line, const char *text);
bool lcomm_bench_set_plot(tool_command_line *line, const char *path);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_OPTIONS_INTERNAL_H
#define LCOMM_TOOLS_CODEC_CODEC_OPTIONS_INTERNAL_H

/* Between reading the command line and understanding its values. Functions that
 * return false have written a sentence. */

#include "tools/codec/codec_options.h"

/* A command line that is being read; error is LCOMM_BENCH_ERROR_MAX bytes. */
typedef struct lcomm_bench_reader {
  int argc;
  char **argv;
  lcomm_bench_options *options;
  char *error;
} lcomm_bench_reader;

/* Write the sentence; returns false. */
__attribute__((format(printf, 2, 3))) bool lcomm_bench_fail(const lcomm_bench_reader *r,
                                                            const char *format, ...);

bool lcomm_bench_add_codec(const lcomm_bench_reader *r, const char *text);
bool lcomm_bench_add_policy(const lcomm_bench_reader *r, const char *text);
bool lcomm_bench_add_default_codecs(const lcomm_bench_reader *r);

/* The table that the library would take. */
void lcomm_bench_add_fastest_table(lcomm_bench_options *options);

/* Those of the list, or "all" that run here. */
bool lcomm_bench_set_tables(const lcomm_bench_reader *r, const char *list);

bool lcomm_bench_set_sizes(const lcomm_bench_reader *r, const char *list);
bool lcomm_bench_set_synthetic(const lcomm_bench_reader *r, const char *text);
bool lcomm_bench_set_seed(const lcomm_bench_reader *r, const char *text);

/* A whole number from 1 to `most`; `name` is the option's. */
bool lcomm_bench_set_whole(const lcomm_bench_reader *r, const char *name, const char *text,
                           uint64_t most, uint64_t *number);

/* Both words after --predict; the second one is taken from argv, behind what
 * getopt has read. */
bool lcomm_bench_set_prediction(const lcomm_bench_reader *r, const char *bandwidth);
bool lcomm_bench_set_baseline(const lcomm_bench_reader *r, const char *name);
bool lcomm_bench_set_plot(const lcomm_bench_reader *r, const char *path);

#endif

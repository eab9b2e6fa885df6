/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_OPTIONS_H
#define LCOMM_TOOLS_CODEC_CODEC_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/plan/policy.h"
#include "tools/codec/codec_predict.h"
#include "tools/codec/codec_synthetic.h"
#include "tools/common/tool_options.h"
#include "tools/common/tool_pages.h"

enum {
  LCOMM_BENCH_CODECS_MAX = 64,
  LCOMM_BENCH_SIZES_MAX = 4,
  LCOMM_BENCH_TABLES_MAX = 8,
  LCOMM_BENCH_THREADS_MAX = 1024,
  LCOMM_BENCH_REPETITIONS_MAX = 1000,
  LCOMM_BENCH_PEERS_MAX = 64,
  LCOMM_BENCH_STEPS_MAX = 1000000,
  LCOMM_BENCH_RANK_MAX = 1024,
  LCOMM_BENCH_CODEC_TEXT_MAX = 96
};

/* One codec to measure. */
typedef struct lcomm_bench_codec {
  lcomm_codec_spec choice;
  lcomm_scope scope;                     /* where top-k picks its share */
  double beta1;                          /* of adam=: --steps sends momentum; 0: gradients */
  char text[LCOMM_BENCH_CODEC_TEXT_MAX]; /* canonical, for tables */
} lcomm_bench_codec;

/* Where the results go besides standard output; NULL: nowhere. */
typedef struct lcomm_bench_files {
  const char *json_path, *csv_path, *plot_path;
} lcomm_bench_files;

/* rank 0: none; rows 0: the matrices of the gradients */
typedef struct lcomm_matrix_shape {
  uint64_t rows, columns, rank;
} lcomm_matrix_shape;

/* What the command line asks for. Strings point into argv. */
typedef struct lcomm_bench_options {
  lcomm_bench_codec codecs[LCOMM_BENCH_CODECS_MAX];
  size_t codec_count;

  char *const *paths;
  size_t path_count;
  const char *layers; /* NULL: none */
  bool synthetic_wanted;
  lcomm_synthetic synthetic;

  bool quality, speed, per_tensor, baselines;
  uint64_t steps; /* 0: none */

  const lcomm_kernels *tables[LCOMM_BENCH_TABLES_MAX]; /* the fastest comes last */
  size_t table_count;
  uint64_t sizes[LCOMM_BENCH_SIZES_MAX]; /* float32 bytes of a buffer, ascending */
  size_t size_count;
  uint64_t threads, repetitions, peers; /* peers 0: no sums */
  tool_pages_kind pages;
  uint64_t owners; /* of a vector in a sum by top-k */

  lcomm_matrix_shape matrix; /* a step of low rank instead of codecs */

  lcomm_baseline baseline;
  double bandwidth; /* of a node in bytes/s, 0: no prediction */
  uint64_t nodes;

  const char *export_path; /* folder for .npy files instead of measuring; NULL: none */
  lcomm_bench_files files;
} lcomm_bench_options;

/* Read the command line. On USAGE `error` (TOOL_ERROR_MAX bytes) holds
 * one sentence. Changes the order of argv. */
tool_parse lcomm_bench_options_parse(int argc, char **argv, lcomm_bench_options *options,
                                     char *error);

/* Write the text of --help. */
void lcomm_bench_help(void);

#endif

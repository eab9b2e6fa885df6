/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_RESULTS_H
#define LCOMM_TOOLS_CODEC_CODEC_RESULTS_H

/* What was found out, codec by codec: filled by codec_survey.h, codec_feedback.h,
 * codec_speed.h, codec_compare.h and codec_predict.h, printed by codec_report.h, codec_json.h,
 * codec_csv.h and codec_plot.h. */

#include "tools/codec/codec_dataset.h"
#include "tools/codec/codec_options.h"
#include "tools/codec/codec_predict.h"
#include "tools/codec/codec_quality.h"
#include "tools/common/tool_timing.h"

typedef enum lcomm_operation {
  LCOMM_OPERATION_ENCODE,
  LCOMM_OPERATION_DECODE,
  LCOMM_OPERATION_ADD,
  LCOMM_OPERATIONS
} lcomm_operation;

typedef struct lcomm_tensor_quality {
  const char *source, *tensor; /* live with the dataset */
  lcomm_quality quality;
} lcomm_tensor_quality;

/* N steps of every stream. */
typedef struct lcomm_steps {
  uint64_t steps; /* 0: not measured */
  double error_square, exact_square;
  uint64_t count;      /* values of all streams */
  uint64_t sent_bytes; /* of all steps */
} lcomm_steps;

typedef struct lcomm_speed {
  const lcomm_kernels *kernels;
  uint64_t size_bytes;
  lcomm_operation operation;
  const char *roofline; /* what it is, NULL: there is none */
  tool_spread gb_s, roofline_gb_s, memcpy_gb_s;
  tool_spread of_roofline, of_memcpy, of_best; /* as fast as it; best: the last table */
} lcomm_speed;

/* Two ways to the same end. */
typedef struct lcomm_comparison {
  const char *name, *other; /* static */
  const lcomm_kernels *kernels;
  uint64_t size_bytes; /* of float32, or of the plane that zstd codes */
  tool_spread gb_s, other_gb_s;
  tool_spread times;         /* times as fast as the other way */
  double ratio, other_ratio; /* bytes in / bytes out, 0: not what it is about */
} lcomm_comparison;

enum {
  LCOMM_SPEEDS_MAX = LCOMM_BENCH_TABLES_MAX * LCOMM_BENCH_SIZES_MAX * LCOMM_OPERATIONS,
  LCOMM_COMPARISONS_MAX = LCOMM_BENCH_TABLES_MAX * LCOMM_BENCH_SIZES_MAX * 2,
  LCOMM_REFUSAL_MAX = 160
};

typedef struct lcomm_result {
  const lcomm_bench_codec *codec;
  char refusal[LCOMM_REFUSAL_MAX]; /* why something was not measured, or "" */
  lcomm_quality quality;           /* count 0: not measured */
  lcomm_tensor_quality *tensors;   /* owned */
  size_t tensor_count;
  lcomm_steps steps;
  lcomm_speed speeds[LCOMM_SPEEDS_MAX];
  size_t speed_count;
  lcomm_comparison comparisons[LCOMM_COMPARISONS_MAX];
  size_t comparison_count;
  lcomm_prediction prediction; /* pipelined_s 0: none */
} lcomm_result;

typedef struct lcomm_results {
  const lcomm_bench_options *options;
  const lcomm_dataset *dataset;
  lcomm_result *codecs; /* one for each of the options, owned */
} lcomm_results;

/* MEMORY. The options and the dataset must outlive the results. */
lcomm_status lcomm_results_create(const lcomm_bench_options *options, const lcomm_dataset *dataset,
                                  lcomm_results *results);
void lcomm_results_free(lcomm_results *results);

/* Remember why the codec could not be measured, if nothing else is yet. */
__attribute__((format(printf, 2, 3))) void lcomm_result_refuse(lcomm_result *result,
                                                               const char *format, ...);

/* The speed at the largest size by the last table, NULL when not measured. */
const lcomm_speed *lcomm_result_speed(const lcomm_result *result, lcomm_operation operation);

/* Normalised mean squared error of the sum of all steps. */
double lcomm_steps_nmse(const lcomm_steps *steps);

/* What the prediction of a codec is made from: all values, what was sent of
 * them, and the speeds. Speeds are 0 for exact float32, which needs no codec. */
lcomm_prediction_case lcomm_result_case(const lcomm_results *results, const lcomm_result *result);

/* Were its bytes and its speeds measured? */
bool lcomm_result_is_fully_measured(const lcomm_result *result);

/* Of a codec that was: the bandwidth of a node's link below which it beats the baseline, in
 * bytes per second, between the nodes of --predict, else LCOMM_VERDICT_NODES. 0: on none,
 * infinity: on all. */
enum { LCOMM_VERDICT_NODES = 4 };
double lcomm_result_pays_below(const lcomm_results *results, const lcomm_result *result);

/* The predictions the options ask for, from what was measured. */
void lcomm_results_predict(lcomm_results *results);

/* "encode", "decode", "add". Static. */
const char *lcomm_operation_name(lcomm_operation operation);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_results.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

lcomm_status lcomm_results_create(const lcomm_bench_options *options, const lcomm_dataset *dataset,
                                  lcomm_results *results) {
  *results = (lcomm_results){.options = options,
                             .dataset = dataset,
                             .codecs = calloc(options->codec_count, sizeof *results->codecs)};
  if (!results->codecs) {
    return LCOMM_ERR_MEMORY;
  }
  for (size_t i = 0; i < options->codec_count; i++) {
    results->codecs[i].codec = &options->codecs[i];
  }
  return LCOMM_OK;
}

void lcomm_results_free(lcomm_results *results) {
  for (size_t i = 0; results->codecs != NULL && i < results->options->codec_count; i++) {
    free(results->codecs[i].tensors);
  }
  free(results->codecs);
  *results = (lcomm_results){0};
}

void lcomm_result_refuse(lcomm_result *result, const char *format, ...) {
  va_list arguments;
  if (result->refusal[0] != '\0') {
    return;
  }
  va_start(arguments, format);
  vsnprintf(result->refusal, sizeof result->refusal, format, arguments);
  va_end(arguments);
}

const lcomm_speed *lcomm_result_speed(const lcomm_result *result, lcomm_operation operation) {
  const lcomm_speed *found = NULL;
  for (size_t i = 0; i < result->speed_count; i++) {
    if (result->speeds[i].operation == operation &&
        (!found || result->speeds[i].size_bytes >= found->size_bytes)) {
      found = &result->speeds[i];
    }
  }
  return found;
}

double lcomm_steps_nmse(const lcomm_steps *steps) {
  if (steps->exact_square > 0.0) {
    return steps->error_square / steps->exact_square;
  }
  return steps->error_square > 0.0 ? (double)INFINITY : 0.0;
}

lcomm_prediction_case lcomm_result_case(const lcomm_results *results, const lcomm_result *result) {
  const lcomm_format *format = &result->codec->choice.format;
  const lcomm_speed *encode = lcomm_result_speed(result, LCOMM_OPERATION_ENCODE);
  const lcomm_speed *decode = lcomm_result_speed(result, LCOMM_OPERATION_DECODE);
  bool exact = format->codec->id == LCOMM_CODEC_NONE && !format->zstd;
  return (lcomm_prediction_case){.count = result->quality.count,
                                 .sent_bytes = (double)result->quality.sent_bytes,
                                 .encode = exact ? 0.0 : 1e9 * encode->gb_s.median,
                                 .decode = exact ? 0.0 : 1e9 * decode->gb_s.median,
                                 .bandwidth = results->options->bandwidth,
                                 .nodes = results->options->nodes,
                                 .baseline = results->options->baseline};
}

bool lcomm_result_is_fully_measured(const lcomm_result *result) {
  return result->quality.count > 0 && lcomm_result_speed(result, LCOMM_OPERATION_ENCODE) &&
         lcomm_result_speed(result, LCOMM_OPERATION_DECODE) != NULL;
}

double lcomm_result_pays_below(const lcomm_results *results, const lcomm_result *result) {
  lcomm_prediction_case given = lcomm_result_case(results, result);
  given.bandwidth = 1.0; /* does not matter */
  given.nodes = given.nodes > 0 ? given.nodes : LCOMM_VERDICT_NODES;
  return lcomm_predict(&given).pipelined_pays_below;
}

void lcomm_results_predict(lcomm_results *results) {
  for (size_t i = 0; i < results->options->codec_count; i++) {
    lcomm_result *result = &results->codecs[i];
    if (result->quality.count == 0 || !lcomm_result_speed(result, LCOMM_OPERATION_DECODE)) {
      continue;
    }
    lcomm_prediction_case given = lcomm_result_case(results, result);
    result->prediction = lcomm_predict(&given);
  }
}

const char *lcomm_operation_name(lcomm_operation operation) {
  static const char *const names[LCOMM_OPERATIONS] = {"encode", "decode", "add"};
  return names[operation];
}

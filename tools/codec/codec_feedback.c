/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_feedback.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/plain.h"
#include "tools/common/tool_pages.h"

/* One bucket of a stream through all steps. */
typedef struct bucket_run {
  const lcomm_dataset_stream *stream;
  lcomm_dataset_bucket bucket;
  const uint64_t *ends;
  float *given, *arrived;
  float *momentum;         /* of what was given; 0 before a codec's first step */
  double *exact, *applied; /* sums over the steps */
  const lcomm_kernels *kernels;
} bucket_run;

/* What is not finite would be the end of every sum. */
static void add_up(double *sum, const float *values, uint64_t n) {
  for (uint64_t i = 0; i < n; i++) {
    sum[i] += isfinite(values[i]) ? (double)values[i] : 0.0;
  }
}

static void add_errors(const bucket_run *j, lcomm_steps *steps) {
  for (uint64_t i = 0; i < j->bucket.count; i++) {
    double error = j->applied[i] - j->exact[i];
    steps->error_square += error * error;
    steps->exact_square += j->exact[i] * j->exact[i];
  }
  steps->count += j->bucket.count;
}

static lcomm_status take_step(const bucket_run *j, lcomm_under_test *tested, uint64_t step,
                              lcomm_result *result) {
  double beta1 = result->codec->beta1;
  const float *sent = beta1 > 0 ? j->momentum : j->given;
  size_t number = (size_t)(step % j->stream->step_count);
  if (step == 0 || j->stream->step_count > 1) {
    lcomm_source_read(j->stream->steps[number], j->bucket.first, j->bucket.count, j->given);
  }
  if (beta1 > 0) {
    lcomm_plain_mean_f32((float)beta1, j->momentum, (float)(1 - beta1), j->given, j->momentum,
                         (size_t)j->bucket.count);
  }
  lcomm_under_test_encode(tested, j->kernels, sent, step + 1);
  if (lcomm_under_test_decode(tested, j->kernels, j->arrived) != LCOMM_OK) {
    return LCOMM_ERR_INTERNAL;
  }
  add_up(j->exact, sent, j->bucket.count);
  add_up(j->applied, j->arrived, j->bucket.count);
  result->steps.sent_bytes += lcomm_under_test_sizes_of(tested).sent_bytes;
  return LCOMM_OK;
}

static lcomm_status take_steps(const bucket_run *j, lcomm_result *result, uint64_t steps) {
  const lcomm_bench_codec *codec = result->codec;
  lcomm_under_test_shape shape = {
      .choice = &codec->choice,
      .count = j->bucket.count,
      .segment_ends = j->ends,
      .segments = codec->scope == LCOMM_SCOPE_BUCKET ? 0 : j->bucket.tensor_count};
  lcomm_under_test *tested = NULL;
  lcomm_status status = lcomm_under_test_create(&shape, &tested);
  if (status == LCOMM_ERR_ARGUMENT) {
    lcomm_result_refuse(result, "a tensor or bucket is too large for it");
    return LCOMM_OK;
  }
  for (uint64_t i = 0; i < j->bucket.count; i++) {
    j->exact[i] = j->applied[i] = 0.0;
    j->momentum[i] = 0.0f;
  }
  for (uint64_t step = 0; status == LCOMM_OK && step < steps; step++) {
    status = take_step(j, tested, step, result);
  }
  if (status == LCOMM_OK) {
    add_errors(j, &result->steps);
  }
  result->steps.steps = steps;
  lcomm_under_test_destroy(tested);
  return status;
}

static lcomm_status run_codecs(lcomm_results *results, const bucket_run *j,
                               tool_progress *progress) {
  lcomm_status status = LCOMM_OK;
  for (size_t i = 0; status == LCOMM_OK && i < results->options->codec_count; i++) {
    tool_progress_next(progress, results->codecs[i].codec->text);
    status = take_steps(j, &results->codecs[i], results->options->steps);
    tool_progress_add(progress, results->options->steps);
  }
  return status;
}

static lcomm_status run_bucket(lcomm_results *results, bucket_run *j, tool_progress *progress) {
  size_t size = (size_t)j->bucket.count * sizeof(float);
  uint64_t *ends = calloc(j->bucket.tensor_count, sizeof *ends);
  lcomm_status status = LCOMM_ERR_MEMORY;
  j->given = tool_pages_alloc(size);
  j->arrived = tool_pages_alloc(size);
  j->momentum = tool_pages_alloc(size);
  j->exact = tool_pages_alloc(2 * size);
  j->applied = tool_pages_alloc(2 * size);
  j->ends = ends;
  if (ends && j->given && j->arrived && j->momentum && j->exact && j->applied) {
    lcomm_dataset_ends(lcomm_source_contents_of(j->stream->steps[0]), &j->bucket, ends);
    status = run_codecs(results, j, progress);
  }
  tool_pages_free(j->applied, 2 * size);
  tool_pages_free(j->exact, 2 * size);
  tool_pages_free(j->momentum, size);
  tool_pages_free(j->arrived, size);
  tool_pages_free(j->given, size);
  free(ends);
  return status;
}

lcomm_status lcomm_feedback_run(lcomm_results *results, tool_progress *progress) {
  lcomm_status status = LCOMM_OK;
  uint32_t environment = lcomm_fp_enter();
  for (size_t i = 0; i < results->dataset->stream_count; i++) {
    bucket_run j = {.stream = &results->dataset->streams[i], .kernels = lcomm_kernels_best()};
    const lcomm_source_contents *contents = lcomm_source_contents_of(j.stream->steps[0]);
    while (status == LCOMM_OK && lcomm_dataset_next(contents, &j.bucket)) {
      status = run_bucket(results, &j, progress);
    }
  }
  lcomm_fp_leave(environment);
  return status;
}

uint64_t lcomm_feedback_units(const lcomm_results *results) {
  uint64_t buckets = 0;
  const lcomm_dataset *dataset = results->dataset;
  for (size_t i = 0; i < dataset->stream_count; i++) {
    buckets += lcomm_dataset_buckets(lcomm_source_contents_of(dataset->streams[i].steps[0]));
  }
  return buckets * results->options->codec_count * results->options->steps;
}

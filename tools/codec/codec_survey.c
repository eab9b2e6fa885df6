/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_survey.h"

#include <stdlib.h>

#include "tools/common/tool_pages.h"

/* What is looked at: values of a source, and where its tensors end. */
typedef struct view {
  const float *given;
  float *arrived; /* room for as many */
  uint64_t count;
  const uint64_t *ends;
  size_t tensors;
  const lcomm_kernels *kernels;
} view;

/* Through the codec and back. */
static lcomm_status measure(const lcomm_bench_codec *codec, const view *v, lcomm_quality *quality) {
  bool whole = codec->scope == LCOMM_SCOPE_BUCKET;
  lcomm_under_test_shape shape = {.choice = &codec->choice,
                                  .count = v->count,
                                  .segment_ends = v->ends,
                                  .segments = whole ? 0 : v->tensors};
  lcomm_under_test *tested = NULL;
  lcomm_status status = lcomm_under_test_create(&shape, &tested);
  if (status != LCOMM_OK) {
    return status;
  }
  lcomm_under_test_encode(tested, v->kernels, v->given, 1);
  status = lcomm_under_test_decode(tested, v->kernels, v->arrived);
  if (status == LCOMM_OK) {
    lcomm_quality_compare(quality, v->given, v->arrived, (size_t)v->count);
    lcomm_quality_weigh(quality, tested);
  }
  lcomm_under_test_destroy(tested);
  return status == LCOMM_OK ? LCOMM_OK : LCOMM_ERR_INTERNAL;
}

static lcomm_status measure_tensors(const lcomm_bench_codec *codec, const view *v,
                                    lcomm_tensor_quality *tensors) {
  uint64_t first = 0;
  lcomm_status status = LCOMM_OK;
  for (size_t i = 0; status == LCOMM_OK && i < v->tensors; first = v->ends[i++]) {
    view one = {.given = v->given + first,
                .arrived = v->arrived,
                .count = v->ends[i] - first,
                .kernels = v->kernels};
    status = measure(codec, &one, &tensors[i].quality);
  }
  return status;
}

/* All codecs on one bucket; `tensor` is its first one among those of all
 * sources. */
static lcomm_status visit_bucket(lcomm_results *results, const view *v, size_t tensor,
                                 tool_progress *progress) {
  for (size_t i = 0; i < results->options->codec_count; i++) {
    lcomm_result *result = &results->codecs[i];
    tool_progress_next(progress, result->codec->text);
    lcomm_status status = measure(result->codec, v, &result->quality);
    if (status == LCOMM_OK && result->tensors) {
      status = measure_tensors(result->codec, v, result->tensors + tensor);
    }
    if (status == LCOMM_ERR_ARGUMENT) {
      lcomm_result_refuse(result, "a tensor or bucket is too large for it");
    } else if (status != LCOMM_OK) {
      return status;
    }
    tool_progress_add(progress, 1);
  }
  return LCOMM_OK;
}

static lcomm_status read_bucket(lcomm_results *results, const lcomm_source *source,
                                const lcomm_dataset_bucket *bucket, size_t tensor,
                                tool_progress *progress) {
  size_t size = (size_t)bucket->count * sizeof(float);
  float *given = tool_pages_alloc(size), *arrived = tool_pages_alloc(size);
  uint64_t *ends = calloc(bucket->tensor_count, sizeof *ends);
  lcomm_status status = LCOMM_ERR_MEMORY;
  if (given && arrived && ends) {
    lcomm_dataset_ends(lcomm_source_contents_of(source), bucket, ends);
    lcomm_source_read(source, bucket->first, bucket->count, given);
    view v = {given, arrived, bucket->count, ends, bucket->tensor_count, lcomm_kernels_best()};
    status = visit_bucket(results, &v, tensor + bucket->tensor, progress);
  }
  free(ends);
  tool_pages_free(arrived, size);
  tool_pages_free(given, size);
  return status;
}

static size_t count_tensors(const lcomm_dataset *dataset) {
  size_t tensors = 0;
  for (size_t i = 0; i < dataset->source_count; i++) {
    tensors += lcomm_source_contents_of(dataset->sources[i])->tensor_count;
  }
  return tensors;
}

static void name_tensors(const lcomm_dataset *dataset, lcomm_tensor_quality *tensors) {
  for (size_t i = 0; i < dataset->source_count; i++) {
    const lcomm_source_contents *contents = lcomm_source_contents_of(dataset->sources[i]);
    for (size_t t = 0; t < contents->tensor_count; t++, tensors++) {
      tensors->source = lcomm_source_name(dataset->sources[i]);
      tensors->tensor = contents->tensors[t].name;
    }
  }
}

static lcomm_status make_tensors(lcomm_results *results) {
  size_t count = count_tensors(results->dataset);
  for (size_t i = 0; results->options->per_tensor && i < results->options->codec_count; i++) {
    lcomm_result *result = &results->codecs[i];
    result->tensors = calloc(count, sizeof *result->tensors);
    if (!result->tensors) {
      return LCOMM_ERR_MEMORY;
    }
    result->tensor_count = count;
    name_tensors(results->dataset, result->tensors);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_survey_run(lcomm_results *results, tool_progress *progress) {
  lcomm_status status = make_tensors(results);
  uint32_t environment = lcomm_fp_enter();
  size_t tensor = 0;
  for (size_t i = 0; status == LCOMM_OK && i < results->dataset->source_count; i++) {
    const lcomm_source *source = results->dataset->sources[i];
    const lcomm_source_contents *contents = lcomm_source_contents_of(source);
    lcomm_dataset_bucket bucket = {0};
    while (status == LCOMM_OK && lcomm_dataset_next(contents, &bucket)) {
      status = read_bucket(results, source, &bucket, tensor, progress);
    }
    tensor += contents->tensor_count;
  }
  lcomm_fp_leave(environment);
  return status;
}

uint64_t lcomm_survey_units(const lcomm_results *results) {
  uint64_t buckets = 0;
  for (size_t i = 0; i < results->dataset->source_count; i++) {
    buckets += lcomm_dataset_buckets(lcomm_source_contents_of(results->dataset->sources[i]));
  }
  return buckets * results->options->codec_count;
}

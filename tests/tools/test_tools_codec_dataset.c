/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Buckets and steps of the values of codec_bench, and what it finds out of them. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "tests/support/temp_folder.h"
#include "tests/support/unit_tests.h"
#include "tools/codec/codec_dataset.h"
#include "tools/codec/codec_feedback.h"
#include "tools/codec/codec_survey.h"

enum { PATH_SIZE = 512, MIB = 1 << 20 };

/* ----------------------------------------------------------------- buckets */

/* Contents of tensors with these counts (ended by 0). */
static lcomm_source_contents contents_of(const uint64_t *counts, lcomm_source_tensor *tensors) {
  lcomm_source_contents contents = {.tensors = tensors};
  for (; counts[contents.tensor_count] > 0; contents.tensor_count++) {
    tensors[contents.tensor_count].first = contents.count;
    tensors[contents.tensor_count].count = counts[contents.tensor_count];
    contents.count += counts[contents.tensor_count];
  }
  return contents;
}

static void tensors_share_buckets_of_25_mib(void **state) {
  (void)state;
  lcomm_source_tensor tensors[8];
  /* 6.25 Mi values fill a bucket */
  const uint64_t counts[] = {5 * MIB, MIB, MIB / 4, 1, 20 * MIB, 3, MIB, 0};
  const lcomm_source_contents contents = contents_of(counts, tensors);
  static const struct {
    size_t tensor, tensor_count;
    uint64_t count;
  } expected[] = {{0, 3, 6 * MIB + MIB / 4}, {3, 1, 1}, {4, 1, 20 * MIB}, {5, 2, MIB + 3}};
  lcomm_dataset_bucket bucket = {0};
  uint64_t first = 0;
  for (size_t i = 0; i < 4; i++) {
    assert_true(lcomm_dataset_next(&contents, &bucket));
    assert_int_equal(bucket.first, first);
    assert_int_equal(bucket.tensor, expected[i].tensor);
    assert_int_equal(bucket.tensor_count, expected[i].tensor_count);
    assert_int_equal(bucket.count, expected[i].count);
    first += bucket.count;
  }
  assert_false(lcomm_dataset_next(&contents, &bucket));
  assert_int_equal(lcomm_dataset_buckets(&contents), 4);
}

static void a_huge_tensor_is_taken_in_pieces(void **state) {
  (void)state;
  lcomm_source_tensor tensors[4];
  const uint64_t piece = LCOMM_DATASET_PIECE_MAX, counts[] = {10, 2 * piece + 5, 7, 0};
  const lcomm_source_contents contents = contents_of(counts, tensors);
  const uint64_t sizes[] = {10, piece, piece, 5 + 7};
  const size_t firsts[] = {0, 1, 1, 1};
  lcomm_dataset_bucket bucket = {0};
  uint64_t ends[2];
  for (size_t i = 0; i < 4; i++) {
    assert_true(lcomm_dataset_next(&contents, &bucket));
    assert_int_equal(bucket.count, sizes[i]);
    assert_int_equal(bucket.tensor, firsts[i]);
    lcomm_dataset_ends(&contents, &bucket, ends);
    assert_int_equal(ends[bucket.tensor_count - 1], bucket.count);
  }
  assert_int_equal(ends[0], 5); /* what is left of the huge one, and the next */
  assert_false(lcomm_dataset_next(&contents, &bucket));
}

/* ----------------------------------------------------------------- captures */

static void file_name(const folder *in, unsigned step, unsigned bucket, unsigned rank, char *path) {
  snprintf(path, PATH_SIZE, "%s/step%06u-bucket%03u-rank%04u.lcg", in->path, step, bucket, rank);
}

static size_t put(uint8_t *bytes, size_t at, uint64_t number, size_t size) {
  memcpy(bytes + at, &number, size);
  return at + size;
}

/* One tensor "a" or "b", by bucket, of values 1 + step + rank/10 + i * 1e-3. */
static void write_capture(const folder *in, unsigned step, unsigned bucket, unsigned rank,
                          uint64_t count) {
  static uint8_t bytes[1 << 16];
  char path[PATH_SIZE];
  memset(bytes, 0, sizeof bytes);
  memcpy(bytes, "LCMG", 4);
  size_t at = put(bytes, 4, 1, 4);
  at = put(bytes, at, step, 8);
  at = put(bytes, at, rank, 4);
  at = put(bytes, at, 2, 4);
  at = put(bytes, at, 1, 4);
  at = put(bytes, at, 1, 4);
  at = put(bytes, at, 1, 4);
  bytes[at++] = (uint8_t)('a' + bucket);
  at = put(bytes, at, count, 8);
  at = (at + 63) / 64 * 64;
  for (uint64_t i = 0; i < count; i++, at += 4) {
    float value = 1.0f + (float)step + (float)rank / 10.0f + (float)i * 1e-3f;
    memcpy(bytes + at, &value, 4);
  }
  put(bytes, at, XXH3_64bits(bytes, at), 8);
  file_name(in, step, bucket, rank, path);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, at + 8, file), at + 8);
  fclose(file);
}

static void write_captures(const folder *in, unsigned steps) {
  for (unsigned step = 0; step < steps; step++) {
    for (unsigned i = 0; i < 4; i++) {
      write_capture(in, step, i / 2, i % 2, i < 2 ? 1000 : 300);
    }
  }
}

/* Measure these codecs on the folder. */
typedef struct run {
  lcomm_bench_options options;
  lcomm_dataset dataset;
  lcomm_results results;
  char *paths[2];
} run;

static void begin(run *r, const folder *in, const char *const *codecs) {
  char error[TOOL_ERROR_MAX];
  lcomm_why why;
  memset(r, 0, sizeof *r);
  r->paths[0] = (char *)(uintptr_t)in->path;
  r->options.paths = r->paths;
  r->options.path_count = 1;
  for (; codecs[r->options.codec_count] != NULL; r->options.codec_count++) {
    lcomm_bench_codec *codec = &r->options.codecs[r->options.codec_count];
    assert_int_equal(lcomm_format_parse(codecs[r->options.codec_count], &codec->choice, &why),
                     LCOMM_OK);
    snprintf(codec->text, sizeof codec->text, "%s", codecs[r->options.codec_count]);
  }
  if (lcomm_dataset_open(&r->options, &r->dataset, error) != LCOMM_OK) {
    fail_msg("%s", error);
  }
  assert_int_equal(lcomm_results_create(&r->options, &r->dataset, &r->results), LCOMM_OK);
}

static void end(run *r) {
  lcomm_results_free(&r->results);
  lcomm_dataset_close(&r->dataset);
}

static void captures_of_a_bucket_and_rank_are_steps_of_one_stream(void **state) {
  static const char *const codecs[] = {"none", NULL};
  static run r;
  write_captures(*state, 3);
  begin(&r, *state, codecs);
  assert_int_equal(r.dataset.source_count, 12);
  assert_int_equal(r.dataset.stream_count, 4);
  for (size_t i = 0; i < 4; i++) {
    const lcomm_dataset_stream *stream = &r.dataset.streams[i];
    assert_int_equal(stream->step_count, 3);
    for (size_t s = 0; s < 3; s++) {
      assert_int_equal(lcomm_source_contents_of(stream->steps[s])->capture.step, s);
    }
  }
  assert_int_equal(lcomm_dataset_count(&r.dataset), 3 * 2 * 1300);
  end(&r);
}

static void tensors_of_other_names_are_another_stream(void **state) {
  static const char *const codecs[] = {"none", NULL};
  static run r;
  write_capture(*state, 0, 0, 0, 500);
  write_capture(*state, 1, 1, 0, 500);
  begin(&r, *state, codecs);
  assert_int_equal(r.dataset.source_count, 2);
  assert_int_equal(r.dataset.stream_count, 2);
  end(&r);
}

static void values_are_repeated_to_fill_a_buffer(void **state) {
  static const char *const codecs[] = {"none", NULL};
  static run r;
  static float values[3000];
  write_captures(*state, 1);
  begin(&r, *state, codecs);
  lcomm_dataset_fill(&r.dataset, 3000, values);
  assert_memory_equal(values + 2600, values, 400 * sizeof *values);
  assert_true(values[0] > 0.99f && values[0] < 1.01f);
  lcomm_dataset_fill(&r.dataset, 10, values + 1);
  assert_memory_equal(values + 1, values + 2600, 10 * sizeof *values);
  end(&r);
}

static void a_survey_sees_every_value_of_every_source(void **state) {
  static const char *const codecs[] = {"none", "int8", "topk:0.1", NULL};
  static run r;
  write_captures(*state, 2);
  begin(&r, *state, codecs);
  r.options.per_tensor = true;
  tool_progress progress = {.total = lcomm_survey_units(&r.results)};
  assert_int_equal(lcomm_survey_run(&r.results, &progress), LCOMM_OK);
  assert_int_equal(progress.done, progress.total);
  for (size_t i = 0; i < 3; i++) {
    const lcomm_result *result = &r.results.codecs[i];
    uint64_t count = 0;
    assert_int_equal(result->quality.count, 2 * 2 * 1300);
    assert_int_equal(result->tensor_count, 8);
    for (size_t t = 0; t < 8; t++) {
      count += result->tensors[t].quality.count;
    }
    assert_int_equal(count, 2 * 2 * 1300);
    assert_string_equal(result->tensors[0].tensor, "a");
    assert_string_equal(result->tensors[7].tensor, "b");
    assert_int_equal(result->tensors[7].quality.count, 300);
  }
  assert_int_equal(r.results.codecs[2].quality.entries, 2 * 2 * 130);
  assert_true(lcomm_quality_nmse(&r.results.codecs[0].quality) <= 0.0);
  assert_true(lcomm_quality_nmse(&r.results.codecs[1].quality) > 0.0);
  end(&r);
}

/* The squares of all tensors are those of the source. */
static void tensors_are_measured_each_on_its_own_values(void **state) {
  static const char *const codecs[] = {"none", "int8", NULL};
  static run r;
  double squares = 0.0;
  write_captures(*state, 1);
  begin(&r, *state, codecs);
  lcomm_results_free(&r.results);
  lcomm_dataset_close(&r.dataset);
  r.options.path_count = 0;
  r.options.synthetic_wanted = r.options.per_tensor = true;
  r.options.synthetic =
      (lcomm_synthetic){.kind = LCOMM_SYNTHETIC_LAYERS, .seed = 1, .count = 50000};
  char error[TOOL_ERROR_MAX];
  assert_int_equal(lcomm_dataset_open(&r.options, &r.dataset, error), LCOMM_OK);
  assert_int_equal(lcomm_results_create(&r.options, &r.dataset, &r.results), LCOMM_OK);
  tool_progress progress = {.total = 1};
  assert_int_equal(lcomm_survey_run(&r.results, &progress), LCOMM_OK);
  const lcomm_result *result = &r.results.codecs[1];
  assert_true(result->tensor_count > 3);
  for (size_t i = 0; i < result->tensor_count; i++) {
    squares += result->tensors[i].quality.given_square;
    assert_true(lcomm_quality_nmse(&result->tensors[i].quality) < 1e-3);
  }
  assert_true(fabs(squares / result->quality.given_square - 1.0) < 1e-9);
  end(&r);
}

static void error_feedback_keeps_the_sum_of_steps_close(void **state) {
  static const char *const codecs[] = {"none", "int8", "int8+ef", "topk:0.1", "topk:0.1+ef", NULL};
  static run r;
  double nmse[5];
  write_captures(*state, 3);
  begin(&r, *state, codecs);
  r.options.steps = 60;
  tool_progress progress = {.total = lcomm_feedback_units(&r.results)};
  assert_int_equal(lcomm_feedback_run(&r.results, &progress), LCOMM_OK);
  assert_int_equal(progress.done, progress.total);
  for (size_t i = 0; i < 5; i++) {
    const lcomm_steps *steps = &r.results.codecs[i].steps;
    assert_int_equal(steps->steps, 60);
    assert_int_equal(steps->count, 2 * 1300);
    nmse[i] = lcomm_steps_nmse(steps);
  }
  assert_true(nmse[0] <= 0.0);
  assert_true(nmse[2] < 0.1 * nmse[1]);
  assert_true(nmse[4] < 0.1 * nmse[3]);
  /* the sum of all steps, each 20 times: (1 + 2 + 3) * 20, and not 60 times the first */
  double mean = sqrt(r.results.codecs[0].steps.exact_square / (2.0 * 1300.0));
  assert_true(mean > 135.0 && mean < 165.0);
  assert_int_equal(r.results.codecs[0].steps.sent_bytes, 60 * 2 * 1300 * 4);
  end(&r);
}

static void a_path_that_is_not_there_is_named(void **state) {
  char error[TOOL_ERROR_MAX], path[PATH_SIZE], *paths[] = {path};
  lcomm_bench_options *options = test_calloc(1, sizeof *options);
  lcomm_dataset dataset;
  write_captures(*state, 1);
  file_name(*state, 3, 0, 0, path);
  options->paths = paths;
  options->path_count = 1;
  assert_int_not_equal(lcomm_dataset_open(options, &dataset, error), LCOMM_OK);
  assert_non_null(strstr(error, "step000003"));
  assert_int_equal(dataset.source_count, 0);
  test_free(options);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tensors_share_buckets_of_25_mib),
    cmocka_unit_test(a_huge_tensor_is_taken_in_pieces),
    IN_FOLDER(captures_of_a_bucket_and_rank_are_steps_of_one_stream),
    IN_FOLDER(tensors_of_other_names_are_another_stream),
    IN_FOLDER(values_are_repeated_to_fill_a_buffer),
    IN_FOLDER(a_survey_sees_every_value_of_every_source),
    IN_FOLDER(tensors_are_measured_each_on_its_own_values),
    IN_FOLDER(error_feedback_keeps_the_sum_of_steps_close),
    IN_FOLDER(a_path_that_is_not_there_is_named),
};
RUN_TESTS(tests)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How codec_bench shows what it found: tables, bars, CSV, JSON, plots. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/unit_tests.h"
#include "tests/support/written_text.h"
#include "tools/codec/codec_csv.h"
#include "tools/codec/codec_json.h"
#include "tools/codec/codec_labels.h"
#include "tools/codec/codec_plot.h"
#include "tools/codec/codec_plot_panel.h"
#include "tools/codec/codec_report.h"
#include "tools/codec/codec_survey.h"
#include "tools/common/tool_progress.h"
#include "tools/common/tool_table.h"

static char *text;

static size_t count_of(const char *haystack, const char *needle) {
  size_t count = 0;
  for (; (haystack = strstr(haystack, needle)) != NULL; haystack += strlen(needle)) {
    count++;
  }
  return count;
}

/* ------------------------------------------------------------------ tables */

static void print_table(bool colours) {
  static const char *const columns[] = {"name", "size\n(MB)", "note", NULL};
  tool_table table = {.columns = columns, .sides = "LRL"};
  FILE *file = open_text(&text);
  tool_table_row(&table);
  tool_table_put(&table, TOOL_COLOUR_NONE, "a\033[31mb");
  tool_table_put(&table, TOOL_COLOUR_GOOD, "%d", 12345);
  tool_table_put(&table, TOOL_COLOUR_NONE, "x");
  tool_table_put(&table, TOOL_COLOUR_NONE, "one too many");
  tool_table_row(&table);
  tool_table_put(&table, TOOL_COLOUR_NONE, "\xc3\xa4\xc3\xb6");
  tool_table_put(&table, TOOL_COLOUR_NONE, "7");
  assert_true(tool_table_print(&table, file, colours));
  fclose(file);
}

static void columns_are_aligned_and_cells_harmless(void **state) {
  (void)state;
  print_table(false);
  assert_string_equal(text, "name      size  note\n"
                            "          (MB)  \n"
                            "a?[31mb  12345  x\n"
                            "\xc3\xa4\xc3\xb6           7  \n");
}

static void colours_are_only_where_they_are_wanted(void **state) {
  (void)state;
  print_table(true);
  assert_int_equal(count_of(text, "\033[32m12345\033[0m"), 1);
  setenv("TERM", "xterm", 1);
  setenv("NO_COLOR", "1", 1);
  assert_false(tool_table_colours(stdout));
  unsetenv("NO_COLOR");
  FILE *file = tmpfile();
  assert_non_null(file);
  assert_false(tool_table_colours(file));
  fclose(file);
}

/* --------------------------------------------------------------------- bar */

static void a_bar_fits_the_terminal(void **state) {
  (void)state;
  char line[512];
  tool_progress progress = {.total = 200, .done = 50};
  tool_progress_line(&progress, 65.0, "int8\nencode", 120, line, sizeof line);
  assert_string_equal(line, "[######..................]  25 %   1:05  int8?encode");
  tool_progress_line(&progress, 65.0, "a long name of a codec", 40, line, sizeof line);
  assert_int_equal(strlen(line), 39);
  progress.done = 1000;
  tool_progress_line(&progress, 0.0, "", 80, line, sizeof line);
  assert_non_null(strstr(line, "100 %"));
  progress.total = 0;
  tool_progress_line(&progress, 0.0, "", 80, line, sizeof line);
  assert_non_null(strstr(line, "100 %"));
}

/* ------------------------------------------------------------------ labels */

static bool overlaps(const lcomm_label *a, const lcomm_label *b) {
  return fabs(a->centre.x - b->centre.x) < 0.5 * (a->width + b->width) &&
         fabs(a->centre.y - b->centre.y) < 0.5 * (a->height + b->height);
}

static void labels_of_a_crowd_can_be_read(void **state) {
  (void)state;
  enum { LABELS = 12 };
  lcomm_label labels[LABELS];
  lcomm_spot points[LABELS];
  for (int i = 0; i < LABELS; i++) {
    points[i] = (lcomm_spot){300.0 + 9.0 * (i % 4), 200.0 + 14.0 * (i / 4)};
    labels[i] = (lcomm_label){.point = points[i], .width = 80.0, .height = 15.0};
  }
  lcomm_labels_place(labels, LABELS, points, LABELS, 700.0, 500.0);
  for (int i = 0; i < LABELS; i++) {
    assert_true(labels[i].centre.x >= 40.0 && labels[i].centre.x <= 660.0);
    assert_true(labels[i].centre.y >= 7.0 && labels[i].centre.y <= 493.0);
    for (int k = 0; k < i; k++) {
      assert_false(overlaps(&labels[i], &labels[k]));
    }
  }
}

static void labels_at_the_edge_stay_inside(void **state) {
  (void)state;
  lcomm_spot points[4] = {{0.0, 0.0}, {400.0, 0.0}, {0.0, 300.0}, {400.0, 300.0}};
  lcomm_label labels[4];
  for (int i = 0; i < 4; i++) {
    labels[i] = (lcomm_label){.point = points[i], .width = 100.0, .height = 15.0};
  }
  lcomm_labels_place(labels, 4, points, 4, 400.0, 300.0);
  for (int i = 0; i < 4; i++) {
    assert_true(labels[i].centre.x >= 50.0 && labels[i].centre.x <= 350.0);
    assert_true(labels[i].centre.y >= 7.5 && labels[i].centre.y <= 292.5);
  }
}

static void no_text_ends_a_string_of_gnuplot(void **state) {
  (void)state;
  FILE *file = open_text(&text);
  lcomm_panel_quote("it's\n`rm`\\", file);
  fclose(file);
  assert_string_equal(text, "'it''s?`rm`\\'");
}

/* ----------------------------------------------------------------- results */

typedef struct run {
  lcomm_bench_options options;
  lcomm_dataset dataset;
  lcomm_results results;
} run;

static void add_speed(lcomm_result *result, lcomm_operation operation, double gb_s) {
  tool_spread spread = {0.5 * gb_s, gb_s, 2.0 * gb_s};
  result->speeds[result->speed_count++] = (lcomm_speed){.kernels = &lcomm_kernels_scalar,
                                                        .size_bytes = 4096,
                                                        .operation = operation,
                                                        .roofline = "r4w1",
                                                        .gb_s = spread,
                                                        .roofline_gb_s = spread,
                                                        .memcpy_gb_s = spread,
                                                        .of_roofline = {1.0, 1.0, 1.0},
                                                        .of_memcpy = {1.0, 1.0, 1.0},
                                                        .of_best = {1.0, 1.0, 1.0}};
}

/* Measured accuracy, made-up speeds. */
static int begin(void **state) {
  static char *words[] = {"codec_bench",
                          "-cint8",
                          "-cnone",
                          "-ctopk:0.01,values=int8+ef+zstd",
                          "--synthetic",
                          "bits:8K",
                          "--per-tensor",
                          "--predict",
                          "1Gbit",
                          "4",
                          "--isa",
                          "scalar",
                          "--size",
                          "4K",
                          NULL};
  run *r = test_calloc(1, sizeof *r);
  char error[TOOL_ERROR_MAX];
  *state = r;
  if (lcomm_bench_options_parse(14, words, &r->options, error) != TOOL_RUN ||
      lcomm_dataset_open(&r->options, &r->dataset, error) != LCOMM_OK ||
      lcomm_results_create(&r->options, &r->dataset, &r->results) != LCOMM_OK) {
    return -1;
  }
  tool_progress progress = {.total = 1};
  lcomm_status status = lcomm_survey_run(&r->results, &progress);
  for (size_t i = 0; i < r->options.codec_count; i++) {
    for (int operation = 0; operation < LCOMM_OPERATIONS; operation++) {
      add_speed(&r->results.codecs[i], (lcomm_operation)operation, 10.0);
    }
  }
  r->results.codecs[0].comparisons[0] = (lcomm_comparison){.name = "sum in one pass",
                                                           .other = "one pass per peer",
                                                           .kernels = &lcomm_kernels_scalar,
                                                           .size_bytes = 4096,
                                                           .times = {1.0, 2.0, 3.0}};
  r->results.codecs[0].comparison_count = 1;
  lcomm_results_predict(&r->results);
  return status == LCOMM_OK ? 0 : -1;
}

static int end(void **state) {
  run *r = *state;
  lcomm_results_free(&r->results);
  lcomm_dataset_close(&r->dataset);
  test_free(r);
  free(text);
  text = NULL;
  return 0;
}

static void every_line_of_csv_has_eleven_fields(void **state) {
  const run *r = *state;
  FILE *file = open_text(&text);
  assert_true(lcomm_csv_print(&r->results, file));
  fclose(file);
  for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
    assert_int_equal(field_count(line), 11);
  }
  assert_int_equal(count_of(text, "section,codec,source"), 1);
  assert_true(count_of(text, "\naccuracy,int8,,,,,,nmse,,") == 1);
  assert_true(count_of(text, "\"topk:0.01,values=int8+ef+zstd\"") > 10);
  assert_int_equal(count_of(text, "\nspeed,int8,,,encode,scalar,4096,gb_s,5,10,20\n"), 1);
  assert_int_equal(count_of(text, "\nduels,int8,,,sum in one pass,scalar,4096,times,1,2,3\n"), 1);
  assert_int_equal(count_of(text, "\nprediction,int8,"), 7);
  assert_int_equal(count_of(text, "\ntensors,none,synthetic:bits,"), 12);
}

static double number_at(const cJSON *object, const char *first, const char *second) {
  const cJSON *item = cJSON_GetObjectItem(object, first);
  if (second) {
    item = cJSON_GetObjectItem(item, second);
  }
  assert_true(cJSON_IsNumber(item));
  return item->valuedouble;
}

static void json_has_all_that_was_measured(void **state) {
  const run *r = *state;
  FILE *file = open_text(&text);
  assert_true(lcomm_json_print(&r->results, file));
  fclose(file);
  cJSON *root = cJSON_Parse(text);
  assert_non_null(root);
  const cJSON *codecs = cJSON_GetObjectItem(root, "codecs");
  assert_int_equal(cJSON_GetArraySize(codecs), 3);
  const cJSON *topk = cJSON_GetArrayItem(codecs, 2);
  assert_string_equal(cJSON_GetObjectItem(topk, "codec")->valuestring,
                      "topk:0.01,values=int8+ef+zstd");
  const lcomm_quality *quality = &r->results.codecs[2].quality;
  assert_true(number_at(topk, "accuracy", "values") >= 8192.0);
  assert_int_equal((int)number_at(topk, "accuracy", "entries"), (int)quality->entries);
  assert_true(fabs(number_at(topk, "accuracy", "ratio") - lcomm_quality_ratio(quality)) < 1e-9);
  assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(topk, "speed")), 3);
  assert_true(number_at(topk, "prediction", "nodes") >= 4.0);
  const cJSON *speed = cJSON_GetArrayItem(cJSON_GetObjectItem(topk, "speed"), 1);
  assert_string_equal(cJSON_GetObjectItem(speed, "operation")->valuestring, "decode");
  assert_true(number_at(speed, "gb_s", "median") >= 10.0);
  const cJSON *int8 = cJSON_GetArrayItem(codecs, 0);
  assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(int8, "duels")), 1);
  assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(int8, "tensors")), 1);
  cJSON_Delete(root);
}

static void the_report_names_every_codec_and_has_no_colours_in_a_file(void **state) {
  run *r = *state;
  lcomm_result_refuse(&r->results.codecs[1], "it %s", "rains");
  lcomm_result_refuse(&r->results.codecs[1], "it snows");
  FILE *file = open_text(&text);
  assert_true(lcomm_report_print(&r->results, file));
  fclose(file);
  /* verdict, accuracy, tensors, three speeds, prediction; int8 has a comparison, too */
  assert_int_equal(count_of(text, "\nint8 "), 7);
  assert_int_equal(count_of(text, "\ntopk:0.01,values=int8+ef+zstd "), 6);
  assert_int_equal(count_of(text, "none: it rains\n"), 1);
  assert_int_equal(count_of(text, "snows"), 0);
  assert_int_equal(count_of(text, "\033"), 0);
}

static void a_plot_has_a_label_for_every_codec_in_both_panels(void **state) {
  run *r = *state;
  FILE *file = open_text(&text);
  lcomm_plot_script(&r->results, "a'b.svg", file);
  fclose(file);
  assert_int_equal(count_of(text, "set terminal svg "), 1);
  assert_int_equal(count_of(text, "set output 'a''b.svg'\n"), 1);
  assert_int_equal(count_of(text, "set label 'int8' at "), 2);
  assert_int_equal(count_of(text, "set label 'none (exact)' at "), 1);
  assert_int_equal(count_of(text, "set label 'none' at "), 1);
  assert_int_equal(count_of(text, "nan"), 0);
  assert_int_equal(count_of(text, "inf"), 0);
  r->options.speed = false;
  r->results.codecs[2].quality.given_square = 0.0; /* an NMSE that no axis has */
  file = open_text(&text);
  lcomm_plot_script(&r->results, "b.png", file);
  fclose(file);
  assert_int_equal(count_of(text, "set terminal pngcairo size 900,"), 1);
  assert_int_equal(count_of(text, "set label 'int8' at "), 1);
  assert_int_equal(count_of(text, "set label 'topk"), 0);
}

static void the_fastest_table_at_the_largest_size_speaks_for_a_codec(void **state) {
  run *r = *state;
  lcomm_result *result = &r->results.codecs[0];
  add_speed(result, LCOMM_OPERATION_DECODE, 20.0);
  result->speeds[result->speed_count - 1].size_bytes = 8192;
  add_speed(result, LCOMM_OPERATION_DECODE, 30.0);
  result->speeds[result->speed_count - 1].size_bytes = 8192;
  add_speed(result, LCOMM_OPERATION_DECODE, 40.0);
  assert_ptr_equal(lcomm_result_speed(result, LCOMM_OPERATION_DECODE),
                   &result->speeds[LCOMM_OPERATIONS + 1]);
  result->speed_count = 0;
  assert_null(lcomm_result_speed(result, LCOMM_OPERATION_DECODE));
}

static void exact_values_need_no_codec_in_a_prediction(void **state) {
  const run *r = *state;
  lcomm_prediction_case int8 = lcomm_result_case(&r->results, &r->results.codecs[0]);
  lcomm_prediction_case none = lcomm_result_case(&r->results, &r->results.codecs[1]);
  assert_true(fabs(int8.encode - 10e9) < 1.0 && fabs(int8.decode - 10e9) < 1.0);
  assert_true(none.encode <= 0.0 && none.decode <= 0.0);
}

#define WITH_RESULTS(test) cmocka_unit_test_setup_teardown(test, begin, end)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(columns_are_aligned_and_cells_harmless),
    cmocka_unit_test(colours_are_only_where_they_are_wanted),
    cmocka_unit_test(a_bar_fits_the_terminal),
    cmocka_unit_test(labels_of_a_crowd_can_be_read),
    cmocka_unit_test(labels_at_the_edge_stay_inside),
    cmocka_unit_test(no_text_ends_a_string_of_gnuplot),
    WITH_RESULTS(every_line_of_csv_has_eleven_fields),
    WITH_RESULTS(json_has_all_that_was_measured),
    WITH_RESULTS(the_report_names_every_codec_and_has_no_colours_in_a_file),
    WITH_RESULTS(a_plot_has_a_label_for_every_codec_in_both_panels),
    WITH_RESULTS(exact_values_need_no_codec_in_a_prediction),
    WITH_RESULTS(the_fastest_table_at_the_largest_size_speaks_for_a_codec),
};
RUN_TESTS(tests)

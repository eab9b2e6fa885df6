/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How the perf programs show what they measured: the table and JSON. */

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
#include <unistd.h>

#include "tests/support/unit_tests.h"
#include "tests/support/written_text.h"
#include "tools/perf/perf_report.h"

enum { RANKS = 2 };

static const lcomm_perf_site site = {
    .ranks = RANKS, .nodes = 1, .hosts = 1, .transports = "shm,ucx", .interfaces = "eth9"};
static char *table;
static char json_path[] = "/tmp/libcomm-perf-XXXXXX";
static lcomm_perf_options options;
static double phases[LCOMM_PERF_PHASE_COUNT * RANKS];

static void parse(lcomm_perf_kind kind, int argc, char **argv) {
  char error[TOOL_ERROR_MAX];
  assert_int_equal(
      lcomm_perf_options_parse(argc, argv, lcomm_perf_collective_of(kind), &options, error),
      TOOL_RUN);
}

static lcomm_perf_row row_of(const char *label) {
  lcomm_perf_row row = {
      .call = {options.collective, 1000, LCOMM_FLOAT32, LCOMM_AVG, 0, 1, 0},
      .label = label,
      .size_bytes = 4000.0,
      .batch = 3,
      .min_s = 1e-6,
      .median_s = 2e-6,
      .max_s = 5e-3,
      .p10_s = 1.5e-6,
      .p90_s = 4e-3,
      .p99_s = 1.25,
      .cpu_s = 7e-6,
      .memory_bytes = 12345.0,
      .rank_phases = phases,
      .is_libcomm = strncmp(label, "MPI_", 4) != 0,
  };
  row.sent_bytes[LCOMM_LINK_NET] = 1000.0;
  row.exact_bytes[LCOMM_LINK_NET] = 4000.0;
  row.messages[LCOMM_LINK_NET] = 2.0;
  return row;
}

static void show(int argc, char **argv, const lcomm_perf_row *rows, int count) {
  lcomm_perf_report report;
  FILE *file = open_text(&table);
  assert_null(lcomm_perf_report_begin(&report, &options, &site, file, argc, argv));
  for (int i = 0; i < count; i++) {
    lcomm_perf_report_row(&report, &rows[i]);
  }
  assert_null(lcomm_perf_report_end(&report));
  fclose(file);
}

/* Line `i` of the table, to be freed. */
static char *line_of(int i) {
  const char *at = table;
  for (; i > 0; i--) {
    at = strchr(at, '\n');
    assert_non_null(at);
    at++;
  }
  return strndup(at, strcspn(at, "\n"));
}

static int words_in(char *line) {
  int words = 0;
  for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
    words++;
  }
  return words;
}

static cJSON *read_json(void) {
  static char text[65536];
  FILE *file = fopen(json_path, "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  cJSON *json = cJSON_Parse(text);
  assert_non_null(json);
  return json;
}

static double number_of(const cJSON *object, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
  if (!cJSON_IsNumber(item)) {
    fail_msg("there is no number '%s'", key);
  }
  return item->valuedouble;
}

static void rows_stand_under_their_headers(void **state) {
  char *argv[] = {"allreduce_perf", "-p", "net=int8", "--against", "mpi", "--percentiles", "-c"};
  (void)state;
  parse(LCOMM_PERF_ALLREDUCE, 7, argv);
  lcomm_perf_row rows[] = {row_of("MPI_Allreduce"), row_of("net=int8")};
  rows[1].is_checked = 1;
  rows[1].times_mpi = 1.25;
  show(7, argv, rows, 2);
  char *titles = line_of(3), *units = line_of(4), *mpi = line_of(5), *own = line_of(6);
  assert_int_equal(titles[0], '#');
  assert_int_equal(strlen(titles), strlen(units));
  assert_int_equal(strlen(titles), strlen(mpi));
  assert_int_equal(strlen(titles), strlen(own));
  /* numbers end where their title ends */
  assert_memory_equal(strstr(own, "4000") + 4, " ", 1);
  assert_ptr_equal(strstr(own, "4000") + 4 - own, strstr(titles, "size") + 4 - titles);
  assert_ptr_equal(strstr(own, "1.25 ") + 4 - own, strstr(titles, "vs mpi") + 6 - titles);
  assert_int_equal(words_in(mpi), words_in(own));
  free(titles);
  free(units);
  free(mpi);
  free(own);
}

static void through_mpi_both_names_have_their_rows(void **state) {
  char *argv[] = {"allreduce_perf", "--through", "mpi", "--against", "mpi", "--json", json_path};
  (void)state;
  parse(LCOMM_PERF_ALLREDUCE, 7, argv);
  lcomm_perf_row rows[] = {row_of("MPI_Allreduce"), row_of("MPI_Allreduce")};
  rows[0].label = options.collective->pmpi_name;
  rows[1].times_mpi = 0.75;
  rows[0].is_libcomm = rows[1].is_libcomm = 0;
  show(7, argv, rows, 2);
  char *titles = line_of(3), *behind = line_of(5), *through = line_of(6);
  assert_non_null(strstr(table, "through: mpi "));
  assert_non_null(strstr(behind, "  PMPI_Allreduce "));
  assert_ptr_equal(strstr(through, "0.75 ") + 4 - through, strstr(titles, "vs mpi") + 6 - titles);
  assert_ptr_equal(strstr(through, "  MPI_Allreduce ") - through,
                   strstr(behind, "  PMPI_Allreduce ") - behind);
  cJSON *json = read_json();
  assert_string_equal(cJSON_GetObjectItemCaseSensitive(json, "through")->valuestring, "mpi");
  const cJSON *results = cJSON_GetObjectItemCaseSensitive(json, "results");
  assert_true(number_of(cJSON_GetArrayItem(results, 1), "times_mpi") == 0.75);
  assert_null(cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(results, 1), "net_bytes"));
  cJSON_Delete(json);
  free(titles);
  free(behind);
  free(through);
}

static void columns_come_with_their_options(void **state) {
  char *plain[] = {"allreduce_perf"};
  char *overlap[] = {"allreduce_perf", "--overlap", "1"};
  char *root[] = {"broadcast_perf"};
  (void)state;
  parse(LCOMM_PERF_ALLREDUCE, 1, plain);
  show(1, plain, NULL, 0);
  assert_null(strstr(table, "vs mpi"));
  assert_null(strstr(table, "p99"));
  assert_null(strstr(table, "iface"));
  assert_null(strstr(table, "root"));
  assert_null(strstr(table, "hidden"));
  assert_non_null(strstr(table, "busbw"));
  parse(LCOMM_PERF_ALLREDUCE, 3, overlap);
  show(3, overlap, NULL, 0);
  assert_non_null(strstr(table, "hidden"));
  assert_null(strstr(table, "busbw"));
  parse(LCOMM_PERF_BROADCAST, 1, root);
  show(1, root, NULL, 0);
  assert_non_null(strstr(table, "root"));
}

static void the_table_closes_as_in_nccl_tests(void **state) {
  char *argv[] = {"allreduce_perf", "-c"};
  (void)state;
  parse(LCOMM_PERF_ALLREDUCE, 2, argv);
  lcomm_perf_row rows[] = {row_of("exact"), row_of("exact")};
  rows[1].median_s = 4e-6;
  show(2, argv, rows, 2);
  assert_non_null(strstr(table, "\n# Out of bounds values : 0 OK\n"));
  assert_non_null(strstr(table, "\n# Avg bus bandwidth    : 1.5 GB/s, exact\n"));
  rows[0].wrong = 3;
  show(2, argv, rows, 2);
  assert_non_null(strstr(table, "\n# Out of bounds values : 3 FAILED\n"));
  parse(LCOMM_PERF_ALLREDUCE, 1, argv);
  show(1, argv, rows, 1);
  assert_non_null(strstr(table, "\n# Out of bounds values : not checked (-c)\n"));
}

static void json_has_what_the_table_has_and_more(void **state) {
  char *argv[] = {"allreduce_perf", "--json", json_path, "-p", "a \"b\"\\\t"};
  (void)state;
  parse(LCOMM_PERF_ALLREDUCE, 5, argv);
  for (int i = 0; i < LCOMM_PERF_PHASE_COUNT * RANKS; i++) {
    phases[i] = i;
  }
  lcomm_perf_row rows[] = {row_of("MPI_Allreduce"), row_of("a \"b\"\\\t")};
  rows[1].is_checked = 1;
  rows[1].error = NAN;
  show(5, argv, rows, 2);
  cJSON *json = read_json();
  assert_int_equal(number_of(json, "ranks"), RANKS);
  assert_int_equal(number_of(json, "nodes"), 1);
  const cJSON *command = cJSON_GetObjectItemCaseSensitive(json, "command");
  assert_int_equal(cJSON_GetArraySize(command), 5);
  const cJSON *results = cJSON_GetObjectItemCaseSensitive(json, "results");
  assert_int_equal(cJSON_GetArraySize(results), 2);
  assert_null(cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(results, 0), "net_bytes"));
  const cJSON *own = cJSON_GetArrayItem(results, 1);
  assert_string_equal(cJSON_GetObjectItemCaseSensitive(own, "policy")->valuestring, "a \"b\"\\ ");
  assert_string_equal(cJSON_GetObjectItemCaseSensitive(own, "redop")->valuestring, "avg");
  assert_true(number_of(own, "median_s") == 2e-6);
  assert_true(number_of(own, "p99_s") == 1.25);
  assert_true(number_of(own, "busbw_gb_s") == 2.0);
  assert_true(number_of(own, "net_bytes") == 1000.0);
  assert_true(number_of(own, "net_messages") == 2.0);
  assert_true(number_of(own, "ratio") == 4.0);
  assert_true(number_of(own, "memory_bytes") == 12345.0);
  assert_true(number_of(own, "cpu_s") == 7e-6);
  const cJSON *wire = cJSON_GetObjectItemCaseSensitive(own, "wire_s");
  assert_int_equal(cJSON_GetArraySize(wire), RANKS);
  assert_int_equal(cJSON_GetArrayItem(wire, 1)->valuedouble, LCOMM_PERF_WIRE * RANKS + 1);
  assert_true(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(own, "error")));
  cJSON_Delete(json);
}

static void each_result_is_one_line_of_json(void **state) {
  char *argv[] = {"allreduce_perf", "--json", json_path};
  char line[8192];
  int results = 0;
  (void)state;
  parse(LCOMM_PERF_ALLREDUCE, 3, argv);
  lcomm_perf_row rows[] = {row_of("exact"), row_of("net=int8"), row_of("net=bf16")};
  show(3, argv, rows, 3);
  FILE *file = fopen(json_path, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    results += strstr(line, "\"policy\": ") != NULL && strstr(line, "\"median_s\": ") != NULL;
  }
  fclose(file);
  assert_int_equal(results, 3);
  assert_string_equal(line, "]}\n");
}

static void a_json_file_that_cannot_be_made_is_told(void **state) {
  char *argv[] = {"allreduce_perf", "--json", "/nowhere/at/all.json"};
  lcomm_perf_report report;
  (void)state;
  parse(LCOMM_PERF_ALLREDUCE, 3, argv);
  assert_non_null(lcomm_perf_report_begin(&report, &options, &site, stderr, 3, argv));
}

static int make_file(void **state) {
  (void)state;
  int file = mkstemp(json_path);
  return file < 0 ? -1 : close(file);
}

static int remove_file(void **state) {
  (void)state;
  free(table);
  return unlink(json_path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rows_stand_under_their_headers),
    cmocka_unit_test(through_mpi_both_names_have_their_rows),
    cmocka_unit_test(columns_come_with_their_options),
    cmocka_unit_test(the_table_closes_as_in_nccl_tests),
    cmocka_unit_test(json_has_what_the_table_has_and_more),
    cmocka_unit_test(each_result_is_one_line_of_json),
    cmocka_unit_test(a_json_file_that_cannot_be_made_is_told),
};
RUN_TESTS_WITHIN(tests, make_file, remove_file)

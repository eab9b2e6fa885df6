/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* cuda_bench, on a device that is the host: what it measures, what it finds wrong
 * and what it writes. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/written_text.h"
#include "tests/tools/cpu_device.h"
#include "tools/cuda/cuda_report.h"

enum { TEXT_MAX = 1 << 16 };

static lcomm_gpu_results results;
static lcomm_gpu_options options;

static size_t calls; /* between cases */

static void count_calls(const lcomm_gpu_results *so_far) {
  assert_true(so_far == &results && results.figure_count == calls);
  calls++;
}

static int begin(void **state) {
  (void)state;
  cpu_trouble = (cpu_device_trouble){.memory_left = SIZE_MAX};
  cpu_is_lost = false;
  options = (lcomm_gpu_options){.count = 20000, .samples = 2, .launches = 2};
  return 0;
}

static int end(void **state) {
  (void)state;
  return cpu_blocks == 0 ? 0 : -1; /* all memory was given back */
}

static bool run(void) {
  calls = 0;
  return lcomm_gpu_bench_run(&options, &cpu_device, count_calls, &results);
}

static const char *written(bool (*print)(const lcomm_gpu_results *, FILE *)) {
  static char text[TEXT_MAX];
  FILE *file = fmemopen(text, sizeof text, "w");
  assert_non_null(file);
  assert_true(print(&results, file));
  fclose(file);
  return text;
}

/* ----------------------------------------------------------------- figures */

static void all_cases_are_measured_and_right(void **state) {
  (void)state;
  assert_true(run());
  assert_int_equal(results.figure_count, lcomm_gpu_case_count);
  for (size_t i = 0; i < results.figure_count; i++) {
    const lcomm_gpu_figure *f = &results.figures[i];
    assert_string_equal(f->why, "");
    assert_true(f->seconds.min > 0.0 && f->seconds.min <= f->seconds.median);
    assert_true(f->of_copy.median > 0.0 && f->gb_s.median > 0.0);
  }
  assert_true(lcomm_gpu_is_right(&results));
  assert_int_equal(calls, lcomm_gpu_case_count + 1);
}

/* For a profiler, which would see the launches of checks and samples, too. */
static void without_samples_there_are_only_launches(void **state) {
  (void)state;
  options.samples = 0;
  cpu_trouble.flip = 77;
  assert_true(run());
  assert_int_equal(results.figure_count, lcomm_gpu_case_count);
  assert_true(lcomm_gpu_is_right(&results));
  assert_true(results.figures[0].seconds.max <= 0.0);
}

static void odd_counts_are_right_too(void **state) {
  (void)state;
  static const uint64_t counts[] = {1, 100, 127, 129, 4097, (1 << 20) + 12345};
  options.samples = options.launches = 1;
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    options.count = counts[i];
    assert_true(run());
    for (size_t f = 0; f < results.figure_count; f++) {
      assert_string_equal(results.figures[f].why, "");
    }
  }
}

static void bytes_are_what_has_to_be_moved(void **state) {
  (void)state;
  static const double bytes[] = {6,  6,  6,         6,       5.0078125, 5.0078125, 5.03125, 5.03125,
                                 10, 10, 9.0078125, 9.03125, 12.0625,   12.25,     12.16,   8};
  assert_int_equal(lcomm_gpu_case_count, sizeof bytes / sizeof *bytes);
  for (size_t i = 0; i < lcomm_gpu_case_count; i++) {
    double found = lcomm_gpu_case_bytes(&lcomm_gpu_cases[i]);
    assert_true(found > bytes[i] - 1e-9 && found < bytes[i] + 1e-9);
    size_t copied = 2 * lcomm_gpu_copy_size(&lcomm_gpu_cases[i], 1 << 20);
    assert_true((double)copied >= found * (1 << 20) && (double)copied < found * (1 << 20) + 64);
  }
}

static void only_some_cases(void **state) {
  (void)state;
  options.only = "int8";
  assert_true(run());
  assert_int_equal(results.figure_count, 4);
  assert_string_equal(results.figures[3].what->name, "8 peers of int8 summed");
}

/* ----------------------------------------------------------------- trouble */

/* The first figure is missing, and the sentence for it has these words. */
static void expect_wrong(const char *words) {
  assert_true(run());
  assert_non_null(strstr(results.figures[0].why, words));
}

/* A wrong byte in the first values and in the last ones, far from them. */
static void one_wrong_byte_is_found(void **state) {
  (void)state;
  options.only = "fp32 -> int8";
  options.count = (1 << 20) + 50000;
  cpu_trouble.flip = 77;
  assert_true(run());
  assert_false(lcomm_gpu_is_right(&results));
  assert_non_null(strstr(results.figures[0].why, "number 76 is 0x"));
  cpu_trouble.flip = options.count;
  expect_wrong("number 1098575 is 0x");
}

/* Between the first and the last values only samples are compared. */
static void wrong_byte_in_the_middle_is_found(void **state) {
  (void)state;
  options.only = "fp32 -> int8";
  options.count = 1 << 22;
  options.samples = options.launches = 1;
  cpu_trouble.flip = (1 << 20) + 73 * 4096 + 6;
  expect_wrong("number 1347589 is 0x");
}

static void wrong_input_of_a_sum_is_found(void **state) {
  (void)state;
  options.only = "8 peers of fp8e4m3";
  cpu_trouble.flip = 5;
  expect_wrong("a result: number 4 is 0x");
}

static void wrong_topk_is_found(void **state) {
  (void)state;
  options.only = "top-k";
  cpu_trouble.short_topk = 1;
  expect_wrong("top-k: a payload of");
}

static void failed_launch_is_explained(void **state) {
  (void)state;
  options.only = "bf16";
  cpu_trouble.launch_error = 700;
  assert_true(run());
  assert_false(lcomm_gpu_is_right(&results));
  assert_non_null(strstr(results.figures[0].why, "device 0 (a processor) failed"));
  assert_non_null(strstr(results.figures[0].why, "the test wants it so"));
}

/* As after an access to memory that is not there: what follows would fail as well. */
static void lost_device_ends_the_measuring(void **state) {
  (void)state;
  cpu_trouble.launch_error = 700;
  cpu_trouble.lost = true;
  cpu_trouble.good_launches = 1 + 3 * 2; /* the first case */
  options.torch_script = "no/such/script";
  assert_true(run());
  assert_true(results.lost);
  assert_int_equal(results.figure_count, 2);
  assert_string_equal(results.figures[0].why, "");
  assert_false(lcomm_gpu_is_right(&results));
  assert_null(strstr(written(lcomm_gpu_csv), "torch"));
  assert_non_null(strstr(written(lcomm_gpu_print), "the other cases were not tried\n"));
}

static void case_without_end_ends_the_program(void **state) {
  int status = 0;
  (void)state;
  options.limit_s = 1;
  cpu_trouble.hangs = true;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    run();
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
}

static void failure_while_it_is_timed_is_explained(void **state) {
  (void)state;
  options.only = "fp32 -> fp16";
  cpu_trouble.launch_error = 700;
  cpu_trouble.good_launches = 4; /* the check takes 1, a sample 2 */
  assert_true(run());
  assert_int_equal(results.figures[0].verdict, LCOMM_GPU_WRONG);
  assert_non_null(strstr(results.figures[0].why, "failed at a launch: the test wants it so"));
}

static void short_memory_is_said(void **state) {
  (void)state;
  for (size_t left = 0; left < 400000; left += 50000) {
    cpu_trouble.memory_left = left;
    assert_false(run());
    assert_true(results.why[0] != '\0');
    assert_int_equal(cpu_blocks, 0);
  }
  cpu_trouble.memory_left = 100;
  assert_false(run());
  assert_non_null(strstr(results.why, "a smaller -n needs less"));
}

static void missing_device_is_said(void **state) {
  (void)state;
  options.device = 3;
  assert_false(run());
  assert_string_equal(results.why, "there is no device 3: cpu has 1, counted from 0");
}

/* ------------------------------------------------------------------ output */

static void json_has_all_cases(void **state) {
  (void)state;
  options.torch_script = "no/such/script";
  assert_true(run());
  cJSON *root = cJSON_Parse(written(lcomm_gpu_json));
  assert_non_null(root);
  const cJSON *cases = cJSON_GetObjectItem(root, "cases");
  assert_int_equal(cJSON_GetArraySize(cases), (int)lcomm_gpu_case_count);
  const cJSON *share = cJSON_GetObjectItem(cJSON_GetArrayItem(cases, 0), "share");
  assert_true(cJSON_IsNumber(cJSON_GetObjectItem(share, "median")));
  assert_true(cJSON_IsString(cJSON_GetObjectItem(cJSON_GetObjectItem(root, "torch"), "why")));
  cJSON_Delete(root);
}

static void csv_lines_have_equal_columns(void **state) {
  (void)state;
  options.torch_script = "no/such/script";
  cpu_trouble.flip = 3; /* sentences in some lines */
  assert_true(run());
  size_t lines = 0;
  for (const char *line = written(lcomm_gpu_csv); *line != '\0'; lines++) {
    assert_int_equal(field_count(line), 13);
    line += strcspn(line, "\n");
    line += *line == '\n';
  }
  assert_int_equal(lines, lcomm_gpu_case_count + 2);
  assert_non_null(strstr(written(lcomm_gpu_csv), "\ntop-k against torch,5,not measured,"));
}

static void table_counts_what_was_met(void **state) {
  (void)state;
  assert_true(run());
  results.figures[0].verdict = LCOMM_GPU_MET;
  for (size_t i = 1; i < results.figure_count; i++) {
    results.figures[i].verdict = LCOMM_GPU_MISSED;
  }
  assert_non_null(strstr(written(lcomm_gpu_print), "met 1 of 15\n"));
  assert_non_null(strstr(written(lcomm_gpu_print), "top-k 1 % with error feedback"));
}

static void torch_is_measured_by_its_script(void **state) {
  (void)state;
  char path[] = "/tmp/lcomm-torch-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  static const char script[] = "print(1.0, 2.0, 3.0)\n";
  assert_int_equal(write(file, script, sizeof script - 1), sizeof script - 1);
  close(file);
  options.only = "top-k";
  options.torch_script = path;
  assert_true(run());
  unlink(path);
  if (!results.torch.measured) {
    skip(); /* no python3 here */
  }
  assert_true(results.torch.seconds.median > 1.9 && results.torch.seconds.median < 2.1);
  double times = lcomm_gpu_times_torch(&results) * results.figures[0].seconds.median;
  assert_true(times > 1.9 && times < 2.1);
}

/* ----------------------------------------------------------------- options */

static tool_parse parse(const char *first, const char *second, char *error) {
  char program[] = "cuda_bench", a[64], b[64];
  char *arguments[] = {program, a, second != NULL ? b : NULL, NULL};
  snprintf(a, sizeof a, "%s", first);
  snprintf(b, sizeof b, "%s", second != NULL ? second : "");
  return lcomm_gpu_options_parse(second ? 3 : 2, arguments, &options, error);
}

static void options_are_read(void **state) {
  (void)state;
  char error[TOOL_ERROR_MAX];
  assert_int_equal(parse("-n", "4K", error), TOOL_RUN);
  assert_int_equal(options.count, 4096);
  assert_int_equal(options.samples, 15);
  assert_int_equal(options.launches, 20);
  assert_int_equal(parse("--torch", NULL, error), TOOL_RUN);
  assert_string_equal(options.torch_script, "tools/cuda/torch_topk.py");
  assert_int_equal(options.count, 1 << 28);
  assert_int_equal(parse("-h", NULL, error), TOOL_HELP);
}

static void bad_options_are_refused_with_a_sentence(void **state) {
  (void)state;
  static const char *const bad[][2] = {
      {"-n", "0"},  {"-n", "5G"},      {"--limit", "x"}, {"-s", "1001"}, {"-l", "x"},
      {"-d", "-1"}, {"--only", "zip"}, {"--odd", NULL},  {"word", NULL}, {"-n", NULL}};
  char error[TOOL_ERROR_MAX];
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(parse(bad[i][0], bad[i][1], error), TOOL_USAGE);
    assert_true(strlen(error) > 10);
  }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {CASE(all_cases_are_measured_and_right),
                                     CASE(odd_counts_are_right_too),
                                     CASE(without_samples_there_are_only_launches),
                                     CASE(bytes_are_what_has_to_be_moved),
                                     CASE(only_some_cases),
                                     CASE(one_wrong_byte_is_found),
                                     CASE(wrong_byte_in_the_middle_is_found),
                                     CASE(wrong_input_of_a_sum_is_found),
                                     CASE(wrong_topk_is_found),
                                     CASE(failed_launch_is_explained),
                                     CASE(lost_device_ends_the_measuring),
                                     CASE(case_without_end_ends_the_program),
                                     CASE(failure_while_it_is_timed_is_explained),
                                     CASE(short_memory_is_said),
                                     CASE(missing_device_is_said),
                                     CASE(json_has_all_cases),
                                     CASE(csv_lines_have_equal_columns),
                                     CASE(table_counts_what_was_met),
                                     CASE(torch_is_measured_by_its_script),
                                     CASE(options_are_read),
                                     CASE(bad_options_are_refused_with_a_sentence)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
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

#include "tests/support/temp_folder.h"
#include "tests/support/unit_tests.h"
#include "trainer/train_plot.h"

enum { TEXT_SIZE = 65536 };

static run_plot *begin(const folder *in, const char *name, char path[512]) {
  run_plot *made;
  failure why = {0};
  snprintf(path, 512, "%s/%s", in->path, name);
  if (plot_open(path, "test accuracy, %", &made, &why)) {
    print_message("%s\n", why.text);
    skip(); /* no gnuplot */
  }
  return made;
}

static const char *script_of(const run_plot *plot, char text[TEXT_SIZE]) {
  FILE *file = fmemopen(text, TEXT_SIZE, "w");
  plot_script(plot, file);
  fclose(file);
  return text;
}

static void a_run_becomes_a_picture(void **state) {
  char path[512], text[TEXT_SIZE] = "";
  failure why = {0};
  run_plot *plot = begin(*state, "it's.svg", path);
  for (uint64_t step = 1; step <= 200; step++) {
    plot_loss(plot, step, step, 1.0 / (double)step);
  }
  plot_test(plot, 200, 87.5);
  assert_int_equal(plot_close(plot, &why), 0);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  assert_non_null(strstr(text, "<svg"));
  assert_non_null(strstr(text, "test accuracy"));
  assert_non_null(strstr(text, "</svg>"));
}

/* Means of the epoch so far: 4 after one step, 3 after two, so the second loss was 2. */
static void a_point_is_the_mean_since_the_one_before(void **state) {
  char path[512], text[TEXT_SIZE] = "";
  failure why = {0};
  run_plot *plot = begin(*state, "plot.svg", path);
  plot_loss(plot, 1, 1, 4.0);
  plot_loss(plot, 2, 2, 3.0);
  plot_loss(plot, 4, 4, 2.0);
  plot_loss(plot, 5, 1, 7.0); /* another epoch */
  plot_loss(plot, 6, 2, NAN);
  script_of(plot, text);
  assert_non_null(strstr(text, "$loss << END\n1 4\n2 2\n4 1\n5 7\nEND\n"));
  assert_null(strstr(text, "y2label"));
  assert_int_equal(plot_close(plot, &why), 0);
}

static void without_a_point_nothing_is_drawn(void **state) {
  char path[512], text[TEXT_SIZE] = "";
  failure why = {0};
  run_plot *plot = begin(*state, "plot.svg", path);
  assert_string_equal(script_of(plot, text), "");
  assert_int_equal(plot_close(plot, &why), 0);
}

static void a_file_that_cannot_be_written_is_refused_at_the_start(void **state) {
  run_plot *plot;
  failure why = {0};
  (void)state;
  assert_int_equal(plot_open("/none/plot.svg", "test", &plot, &why), -1);
  assert_true(strstr(why.text, "/none/plot.svg") || strstr(why.text, "gnuplot"));
  char *path = test_malloc(4096);
  strncpy(path, getenv("PATH"), 4095);
  path[4095] = '\0';
  setenv("PATH", "/none", 1);
  assert_int_equal(plot_open("/none/plot.svg", "test", &plot, &why), -1);
  assert_non_null(strstr(why.text, "needs gnuplot"));
  setenv("PATH", path, 1);
  test_free(path);
}

static void no_plot_is_fine(void **state) {
  run_plot *plot;
  failure why = {0};
  (void)state;
  assert_int_equal(plot_open(NULL, "test", &plot, &why), 0);
  assert_null(plot);
  plot_loss(plot, 1, 1, 1.0);
  plot_test(plot, 1, 1.0);
  assert_int_equal(plot_close(plot, &why), 0);
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(a_run_becomes_a_picture),
    IN_FOLDER(a_point_is_the_mean_since_the_one_before),
    IN_FOLDER(without_a_point_nothing_is_drawn),
    cmocka_unit_test(a_file_that_cannot_be_written_is_refused_at_the_start),
    cmocka_unit_test(no_plot_is_fine),
};
RUN_TESTS(tests)

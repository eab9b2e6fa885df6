/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What fidelity_bench says of trainings: the grid, the file of results, the summary, its table and
 * its pictures. */

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

#include "tests/support/written_text.h"
#include "tools/fidelity/fidelity_options.h"
#include "tools/fidelity/fidelity_plot.h"
#include "tools/fidelity/fidelity_table.h"

static char path[] = "/tmp/fidelity-XXXXXX";

static fidelity_options parse(const char *const *words, tool_parse expected) {
  static char error[TOOL_ERROR_MAX];
  static fidelity_options made;
  char *argv[16] = {"fidelity_bench"};
  int argc = 1;
  for (; words[argc - 1]; argc++) {
    argv[argc] = (char *)words[argc - 1];
  }
  assert_int_equal(fidelity_options_parse(argc, argv, &made, error), expected);
  return made;
}

static const char *const small_grid[] = {
    "--models",   "mlp",      "--optimizers", "sgd",     "--worlds", "2x1,4x1", "--preset",
    "a=net=int8", "--preset", "b=net=int4",   "--seeds", "3",        NULL};

/* --------------------------------------------------------------------- grid */

static void every_cell_of_a_grid_is_there_once(void **state) {
  (void)state;
  fidelity_options o = parse((const char *const[]){NULL}, TOOL_RUN);
  size_t count = fidelity_cell_count(&o.grid);
  char(*keys)[FIDELITY_KEY_MAX] = calloc(count, sizeof *keys);
  assert_non_null(keys);
  assert_int_equal(count, 2 * 2 * 2 * 12 * 5);
  for (size_t i = 0; i < count; i++) {
    fidelity_cell cell = fidelity_cell_at(&o.grid, i);
    fidelity_cell_key(&cell, keys[i]);
    for (size_t other = 0; other < i; other++) {
      assert_string_not_equal(keys[other], keys[i]);
    }
  }
  free(keys);
}

static void a_key_holds_all_that_a_result_depends_on(void **state) {
  (void)state;
  fidelity_options o = parse(small_grid, TOOL_RUN);
  char keys[8][FIDELITY_KEY_MAX];
  fidelity_cell cell = fidelity_cell_at(&o.grid, 0);
  fidelity_cell_key(&cell, keys[0]);
  o.grid.training.batch *= 2;
  fidelity_cell_key(&cell, keys[1]);
  o.grid.training.images /= 2;
  fidelity_cell_key(&cell, keys[2]);
  o.grid.training.epochs++;
  fidelity_cell_key(&cell, keys[3]);
  o.grid.training.rates[OPTIMIZER_SGD] *= 2.0f;
  fidelity_cell_key(&cell, keys[4]);
  o.grid.training.momentum *= 0.5f;
  fidelity_cell_key(&cell, keys[5]);
  o.grid.training.data_hash++;
  fidelity_cell_key(&cell, keys[6]);
  cell.seed++;
  fidelity_cell_key(&cell, keys[7]);
  for (size_t i = 1; i < 8; i++) {
    assert_string_not_equal(keys[i - 1], keys[i]);
  }
}

static void the_reference_is_the_first_preset(void **state) {
  (void)state;
  fidelity_options o = parse(small_grid, TOOL_RUN);
  assert_int_equal(o.grid.preset_count, 3);
  assert_string_equal(o.grid.presets[0].name, "fp32");
  assert_string_equal(o.grid.presets[0].policy, "");
  assert_string_equal(o.grid.presets[2].policy, "net=int4");
}

static void known_presets_are_taken_by_name(void **state) {
  (void)state;
  static const char *const words[] = {"--preset", "int8", "--preset", "own=net=bf16 min=0", NULL};
  fidelity_options o = parse(words, TOOL_RUN);
  assert_int_equal(o.grid.preset_count, 3);
  assert_string_equal(o.grid.presets[1].name, "int8");
  assert_string_equal(o.grid.presets[1].policy, "net=int8");
  assert_string_equal(o.grid.presets[2].policy, "net=bf16 min=0");
}

static void seeds_are_a_count_or_a_range(void **state) {
  (void)state;
  fidelity_options few = parse((const char *const[]){"--seeds", "2", NULL}, TOOL_RUN);
  fidelity_options later = parse((const char *const[]){"--seeds", "6-10", NULL}, TOOL_RUN);
  assert_int_equal(fidelity_cell_at(&few.grid, 0).seed, 1);
  assert_int_equal(fidelity_cell_at(&few.grid, 1).seed, 2);
  assert_int_equal(later.grid.seeds, 5);
  assert_int_equal(fidelity_cell_at(&later.grid, 0).seed, 6);
  assert_int_equal(fidelity_cell_at(&later.grid, 9).seed, 10);
}

static void what_makes_no_grid_is_refused(void **state) {
  (void)state;
  static const char *const bad[][3] = {{"--models", "cnn,gpu"},   {"--models", "cnn,gpt-nano"},
                                       {"--optimizers", "sgd,"},  {"--worlds", "1x4"},
                                       {"--worlds", "4x17"},      {"--worlds", "4"},
                                       {"--preset", "net"},       {"--preset", "a'b=net=int8"},
                                       {"--preset", "=net=int8"}, {"--seeds", "0"},
                                       {"--seeds", "5-4"},        {"--seeds", "1-65"},
                                       {"--seeds", "-3"},         {"--batch", "7"},
                                       {"--sgd-lr", "-1"},        {"stray"}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    parse(bad[i], TOOL_USAGE);
  }
}

/* -------------------------------------------------------------------- store */

static void put(const fidelity_grid *grid, size_t cell, double accuracy, double bytes) {
  fidelity_cell at = fidelity_cell_at(grid, cell);
  failure why = {0};
  fidelity_outcome outcome = {.accuracy = accuracy,
                              .bytes = bytes,
                              .steps = 10,
                              .seconds = 1,
                              .curve = {2.0f, (float)accuracy},
                              .curve_count = 2};
  assert_int_equal(fidelity_store_append(path, &at, &outcome, &why), 0);
}

static void put_text(const char *text) {
  FILE *file = fopen(path, "a");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static fidelity_store read_store(void) {
  fidelity_store store;
  failure why = {0};
  assert_int_equal(fidelity_store_read(path, &store, &why), 0);
  return store;
}

static int forget(void **state) {
  (void)state;
  unlink(path);
  return 0;
}

static void results_are_found_again(void **state) {
  (void)state;
  fidelity_options o = parse(small_grid, TOOL_RUN);
  fidelity_cell one = fidelity_cell_at(&o.grid, 4), other = fidelity_cell_at(&o.grid, 5);
  put(&o.grid, 4, 0.875, 1e9 + 1);
  fidelity_store store = read_store();
  const fidelity_outcome *found = fidelity_store_find(&store, &one);
  assert_non_null(found);
  assert_true(found->accuracy == 0.875 && found->bytes == 1e9 + 1 && found->steps == 10);
  assert_int_equal(found->curve_count, 2);
  assert_true(found->curve[0] == 2.0f);
  assert_null(fidelity_store_find(&store, &other));
  fidelity_store_free(&store);
}

static void lines_that_are_not_whole_are_passed_over(void **state) {
  (void)state;
  fidelity_options o = parse(small_grid, TOOL_RUN);
  put_text("not JSON\n{\"cell\": 7}\n{\"cell\": \"x\", \"accuracy\": null}\n");
  put(&o.grid, 0, 0.5, 100);
  put_text("{\"cell\": \"y\", \"accur");
  fidelity_store store = read_store();
  assert_int_equal(store.count, 1);
  fidelity_store_free(&store);
}

static void a_missing_file_is_empty(void **state) {
  (void)state;
  fidelity_store store = read_store();
  assert_int_equal(store.count, 0);
  fidelity_store_free(&store);
}

/* ------------------------------------------------------------------ summary */

static void a_spread_is_that_of_a_sample(void **state) {
  (void)state;
  const double values[] = {1.0, 2.0, 4.0, 5.0};
  fidelity_spread spread = fidelity_spread_of(values, 4);
  assert_true(fabs(spread.mean - 3.0) < 1e-12);
  assert_true(fabs(spread.deviation - sqrt(10.0 / 3.0)) < 1e-12);
  assert_true(fidelity_spread_of(values, 1).deviation == 0.0);
}

/* Cells of 2x1: fp32 0..2, a 3..5, b 6..8. fp32 deviates by one point. */
static void fill_first_world(const fidelity_grid *grid) {
  static const double accuracies[] = {0.89, 0.90, 0.91, 0.885, 0.895, 0.91, 0.88, 0.88, 0.89};
  for (size_t i = 0; i < 9; i++) {
    put(grid, i, accuracies[i], i < 3 ? 800.0 : i < 6 ? 200.0 : 100.0);
  }
}

static void cases_are_compared_at_equal_seeds(void **state) {
  (void)state;
  fidelity_options o = parse(small_grid, TOOL_RUN);
  fidelity_summary fp32, a, b, elsewhere;
  fill_first_world(&o.grid);
  fidelity_store store = read_store();
  fidelity_summarise(&o.grid, 0, &store, &fp32);
  fidelity_summarise(&o.grid, 1, &store, &a);
  fidelity_summarise(&o.grid, 2, &store, &b);
  fidelity_summarise(&o.grid, 4, &store, &elsewhere);
  fidelity_store_free(&store);
  assert_true(fabs(fp32.accuracy.mean - 90.0) < 1e-9 && fabs(fp32.accuracy.deviation - 1.0) < 1e-9);
  assert_int_equal(fp32.verdict, FIDELITY_WITHIN);
  assert_true(fabs(a.difference.mean + 1.0 / 3.0) < 1e-9);
  assert_true(fabs(a.difference.deviation - sqrt(1.0 / 12.0)) < 1e-9); /* -.5 -.5 0 */
  assert_int_equal(a.verdict, FIDELITY_WITHIN);
  assert_true(fabs(a.ratio - 4.0) < 1e-9 && fabs(a.bytes_per_step - 20.0) < 1e-9);
  assert_true(fabs(b.difference.mean + 5.0 / 3.0) < 1e-9);
  assert_int_equal(b.verdict, FIDELITY_BELOW);
  assert_int_equal(elsewhere.verdict, FIDELITY_UNKNOWN);
  assert_int_equal(elsewhere.accuracy.count, 0);
}

static void only_seeds_of_both_are_compared(void **state) {
  (void)state;
  fidelity_options o = parse(small_grid, TOOL_RUN);
  fidelity_summary a;
  put(&o.grid, 0, 0.90, 800);
  put(&o.grid, 2, 0.80, 800);
  put(&o.grid, 3, 0.90, 100);
  put(&o.grid, 4, 0.10, 100);
  fidelity_store store = read_store();
  fidelity_summarise(&o.grid, 1, &store, &a);
  fidelity_store_free(&store);
  assert_int_equal(a.accuracy.count, 2);
  assert_int_equal(a.difference.count, 1);
  assert_true(fabs(a.difference.mean) < 1e-9);
  assert_int_equal(a.verdict, FIDELITY_UNKNOWN);
}

static void curves_are_means_of_the_seeds(void **state) {
  (void)state;
  fidelity_options o = parse(small_grid, TOOL_RUN);
  fidelity_summary fp32;
  fill_first_world(&o.grid);
  fidelity_store store = read_store();
  fidelity_summarise(&o.grid, 0, &store, &fp32);
  fidelity_store_free(&store);
  assert_int_equal(fp32.curve_count, 2);
  assert_true(fabs((double)fp32.curve[1] - 0.90) < 1e-6);
  assert_true(fabs((double)fp32.curve_deviation[1] - 0.01) < 1e-6);
}

/* ------------------------------------------------------------------- output */

static char *text;

static void summarise_all(fidelity_summary *all) {
  fidelity_options o = parse(small_grid, TOOL_RUN);
  fill_first_world(&o.grid);
  fidelity_store store = read_store();
  for (size_t i = 0; i < 6; i++) {
    fidelity_summarise(&o.grid, i, &store, &all[i]);
  }
  fidelity_store_free(&store);
}

static size_t lines_of(const char *of) {
  size_t lines = 0;
  for (; *of; of++) {
    lines += *of == '\n';
  }
  return lines;
}

static void tables_say_what_was_trained_and_what_was_not(void **state) {
  (void)state;
  fidelity_summary all[6];
  summarise_all(all);
  FILE *file = open_text(&text);
  assert_true(fidelity_table_print(all, 6, false, file));
  fclose(file);
  assert_int_equal(lines_of(text), 2 + 6);
  assert_non_null(strstr(text, "below"));
  assert_non_null(strstr(text, "not run"));
  file = open_text(&text);
  fidelity_table_csv(all, 6, file);
  fclose(file);
  assert_int_equal(lines_of(text), 1 + 3);
  assert_non_null(strstr(text, "-1.6667,0.5774,1.0000,below,10,10.0,100,8.00\n"));
}

static void pictures_have_a_panel_for_what_was_trained(void **state) {
  (void)state;
  fidelity_summary all[6];
  summarise_all(all);
  FILE *file = open_text(&text);
  fidelity_plot_accuracy(all, 6, 3, "it's.svg", file);
  fclose(file);
  assert_non_null(strstr(text, "layout 1,1"));
  assert_non_null(strstr(text, "set output 'it''s.svg'"));
  assert_non_null(strstr(text, "20 89.6666667 1.25830574 0x1f77b4 \"a\"\n"));
  assert_non_null(strstr(text, "first 89 to graph 1,first 91 "));
  file = open_text(&text);
  fidelity_plot_loss(all, 6, 3, "loss.svg", file);
  fclose(file);
  assert_non_null(strstr(text, "$curve0 << EOD\n2.5 2 0\n7.5 0.899999"));
  free(text);
  text = NULL;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_cell_of_a_grid_is_there_once),
      cmocka_unit_test(a_key_holds_all_that_a_result_depends_on),
      cmocka_unit_test(the_reference_is_the_first_preset),
      cmocka_unit_test(known_presets_are_taken_by_name),
      cmocka_unit_test(seeds_are_a_count_or_a_range),
      cmocka_unit_test(what_makes_no_grid_is_refused),
      cmocka_unit_test_teardown(results_are_found_again, forget),
      cmocka_unit_test_teardown(lines_that_are_not_whole_are_passed_over, forget),
      cmocka_unit_test_teardown(a_missing_file_is_empty, forget),
      cmocka_unit_test(a_spread_is_that_of_a_sample),
      cmocka_unit_test_teardown(cases_are_compared_at_equal_seeds, forget),
      cmocka_unit_test_teardown(only_seeds_of_both_are_compared, forget),
      cmocka_unit_test_teardown(curves_are_means_of_the_seeds, forget),
      cmocka_unit_test_teardown(tables_say_what_was_trained_and_what_was_not, forget),
      cmocka_unit_test_teardown(pictures_have_a_panel_for_what_was_trained, forget),
  };
  int file = mkstemp(path);
  if (file < 0) {
    return 1;
  }
  close(file);
  unlink(path);
  return cmocka_run_group_tests(tests, NULL, NULL);
}

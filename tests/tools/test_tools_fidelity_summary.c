/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What fidelity_bench makes of trainings: means, deviations, differences and verdicts. */

#include "tests/support/unit_tests.h"
#include "tests/tools/fidelity_results.h"
#include "tools/fidelity/fidelity_overflow.h"
#include "tools/fidelity/fidelity_summary.h"

/* ------------------------------------------------------------------ summary */

static void a_spread_is_that_of_a_sample(void **state) {
  (void)state;
  const double values[] = {1.0, 2.0, 4.0, 5.0};
  fidelity_spread spread = fidelity_spread_of(values, 4);
  assert_true(fabs(spread.mean - 3.0) < 1e-12);
  assert_true(fabs(spread.deviation - sqrt(10.0 / 3.0)) < 1e-12);
  assert_true(fidelity_spread_of(values, 1).deviation == 0.0);
}

static void cases_are_compared_at_equal_seeds(void **state) {
  const char *path = path_in(state);
  fidelity_options o = parse(small_grid, TOOL_RUN);
  fidelity_summary fp32, a, b, elsewhere;
  fill_first_world(path, &o.grid);
  fidelity_store store = read_store(path);
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

typedef struct trained {
  size_t cell;
  double accuracy, bytes;
} trained;

/* Of the second case, once `count` cells were trained. */
static fidelity_summary summary_of(void **state, const trained *cells, size_t count) {
  const char *path = path_in(state);
  fidelity_options o = parse(small_grid, TOOL_RUN);
  fidelity_summary made;
  for (size_t i = 0; i < count; i++) {
    put(path, &o.grid, cells[i].cell, cells[i].accuracy, cells[i].bytes);
  }
  fidelity_store store = read_store(path);
  fidelity_summarise(&o.grid, 1, &store, &made);
  fidelity_store_free(&store);
  return made;
}

static void only_seeds_of_both_are_compared(void **state) {
  static const trained cells[] = {{0, 0.90, 800}, {2, 0.80, 900}, {3, 0.90, 100}, {4, 0.10, 300}};
  fidelity_summary a = summary_of(state, cells, sizeof cells / sizeof cells[0]);
  assert_int_equal(a.accuracy.count, 2);
  assert_int_equal(a.difference.count, 1);
  assert_true(fabs(a.difference.mean) < 1e-9);
  assert_true(fabs(a.ratio - 8.0) < 1e-9 && fabs(a.bytes - 200.0) < 1e-9);
  assert_int_equal(a.verdict, FIDELITY_UNKNOWN);
}

/* Not of all seeds that it has. */
static void the_deviation_is_that_of_the_reference_at_the_seeds_of_both(void **state) {
  static const trained cells[] = {
      {0, 0.900, 800}, {1, 0.901, 800}, {2, 0.700, 800}, {3, 0.890, 100}, {4, 0.895, 100}};
  fidelity_summary a = summary_of(state, cells, sizeof cells / sizeof cells[0]);
  assert_true(fabs(a.reference_deviation - sqrt(0.005)) < 1e-9);
  assert_true(fabs(a.difference.mean + 0.8) < 1e-9);
  assert_int_equal(a.verdict, FIDELITY_BELOW);
}

/* The limit is one deviation below, where it still is within; above it, all is. */
static void a_verdict_has_its_limit_one_deviation_below_the_reference(void **state) {
  static const struct {
    double points;
    fidelity_verdict verdict;
  } cases[] = {{-0.9, FIDELITY_WITHIN}, {-1.1, FIDELITY_BELOW}, {5.0, FIDELITY_WITHIN}};
  const char *path = path_in(state);
  fidelity_options o = parse(small_grid, TOOL_RUN);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    fidelity_summary a;
    for (size_t seed = 0; seed < 3; seed++) { /* 89, 90, 91: a deviation of 1 */
      put(path, &o.grid, seed, 0.89 + 0.01 * (double)seed, 800);
      put(path, &o.grid, 3 + seed, 0.89 + 0.01 * ((double)seed + cases[i].points), 100);
    }
    fidelity_store store = read_store(path);
    fidelity_summarise(&o.grid, 1, &store, &a);
    fidelity_store_free(&store);
    assert_int_equal(a.verdict, cases[i].verdict);
  }
}

static void each_world_has_its_own_reference(void **state) {
  const char *path = path_in(state);
  fidelity_options o = parse(small_grid, TOOL_RUN);
  fidelity_summary elsewhere;
  fill_first_world(path, &o.grid);
  for (size_t seed = 0; seed < 3; seed++) {
    put(path, &o.grid, 9 + seed, 0.80, 3000);
    put(path, &o.grid, 12 + seed, 0.81, 1000);
  }
  fidelity_store store = read_store(path);
  fidelity_summarise(&o.grid, 4, &store, &elsewhere);
  fidelity_store_free(&store);
  assert_int_equal(elsewhere.of.world.nodes, 4);
  assert_string_equal(elsewhere.of.preset->name, "a");
  assert_true(fabs(elsewhere.difference.mean - 1.0) < 1e-9);
  assert_true(fabs(elsewhere.ratio - 3.0) < 1e-9);
}

static void curves_are_means_of_the_seeds(void **state) {
  const char *path = path_in(state);
  fidelity_options o = parse(small_grid, TOOL_RUN);
  fidelity_summary fp32;
  fill_first_world(path, &o.grid);
  fidelity_store store = read_store(path);
  fidelity_summarise(&o.grid, 0, &store, &fp32);
  fidelity_store_free(&store);
  assert_int_equal(fp32.curve_count, 2);
  assert_true(fabs((double)fp32.curve[1] - 0.90) < 1e-6);
  assert_true(fabs((double)fp32.curve_deviation[1] - 0.01) < 1e-6);
}

/* ----------------------------------------------------------------- overflow */

static fidelity_grid spoilt_grid(void) {
  static const char *const words[] = {SMALL_GRID, "--overflow", "1000", NULL};
  return parse(words, TOOL_RUN).grid;
}

static void each_preset_is_there_with_a_lost_step_and_without(void **state) {
  (void)state;
  static const char *const names[] = {"fp32", "fp32+inf", "a", "a+inf", "b", "b+inf"};
  fidelity_grid grid = spoilt_grid();
  char clean[FIDELITY_KEY_MAX], spoilt[FIDELITY_KEY_MAX];
  assert_int_equal(grid.preset_count, 6);
  for (size_t i = 0; i < fidelity_case_count(&grid); i++) {
    fidelity_case of = fidelity_case_at(&grid, i);
    assert_string_equal(of.preset->name, names[i % 6]);
    assert_string_equal(of.preset->policy, grid.presets[i % 6 / 2 * 2].policy);
    assert_true(of.overflow == (i % 2 ? 1000.0 : 0.0));
  }
  fidelity_cell one = fidelity_cell_at(&grid, 0), other = fidelity_cell_at(&grid, 3);
  fidelity_cell_key(&one, clean);
  fidelity_cell_key(&other, spoilt);
  assert_int_equal(one.seed, other.seed);
  assert_string_not_equal(clean, spoilt);
}

static void long_names_are_cut_before_the_mark(void **state) {
  (void)state;
  static const char *const words[] = {"--preset", "a23456789012345678901x3=net=int8", "--overflow",
                                      "2", NULL};
  fidelity_grid grid = parse(words, TOOL_RUN).grid;
  assert_string_equal(grid.presets[2].name, "a23456789012345678901x3");
  assert_string_equal(grid.presets[3].name, "a234567890123456789+inf");
}

static void one_step_in_the_middle_is_lost(void **state) {
  (void)state;
  fidelity_grid grid = spoilt_grid();
  fidelity_case clean = fidelity_case_at(&grid, 0), spoilt = fidelity_case_at(&grid, 1);
  for (uint64_t number = 0; number < 9; number++) {
    assert_false(fidelity_overflow_is_due(&clean, number, 9));
    assert_int_equal(fidelity_overflow_is_due(&spoilt, number, 9), number == 4);
  }
}

/* fp32 is as good with the step as without, a loses 0.2 points, b 0.4, all at equal seeds. */
static void a_training_recovers_when_it_is_a_third_of_a_point_away_at_most(void **state) {
  static const double lost[] = {0.0, 0.002, 0.004};
  const char *path = path_in(state);
  fidelity_grid grid = spoilt_grid();
  char *text = NULL;
  for (size_t preset = 0; preset < 3; preset++) {
    for (size_t seed = 0; seed < 3; seed++) {
      double accuracy = 0.8 + 0.05 * (double)seed;
      put(path, &grid, 6 * preset + seed, accuracy, 100);
      put(path, &grid, 6 * preset + 3 + seed, accuracy - lost[preset], 100);
    }
  }
  fidelity_store store = read_store(path);
  FILE *file = open_text(&text);
  assert_true(fidelity_overflow_print(&grid, &store, false, file));
  fclose(file);
  fidelity_store_free(&store);
  char *line = strstr(text, "fp32+inf");
  assert_non_null(line);
  assert_string_equal(strtok(strstr(line, "85.00"), "\n"),
                      "85.00     85.00       +0.00  0.00  recovers");
  line = strtok(NULL, "\n");
  assert_non_null(strstr(line, "a+inf"));
  assert_non_null(strstr(line, "85.00     84.80       -0.20  0.00  recovers"));
  line = strtok(NULL, "\n");
  assert_non_null(strstr(line, "b+inf"));
  assert_non_null(strstr(line, "85.00     84.60       -0.40  0.00  does not"));
  free(text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_spread_is_that_of_a_sample),
    IN_FOLDER(cases_are_compared_at_equal_seeds),
    IN_FOLDER(only_seeds_of_both_are_compared),
    IN_FOLDER(the_deviation_is_that_of_the_reference_at_the_seeds_of_both),
    IN_FOLDER(a_verdict_has_its_limit_one_deviation_below_the_reference),
    IN_FOLDER(each_world_has_its_own_reference),
    IN_FOLDER(curves_are_means_of_the_seeds),
    cmocka_unit_test(each_preset_is_there_with_a_lost_step_and_without),
    cmocka_unit_test(long_names_are_cut_before_the_mark),
    cmocka_unit_test(one_step_in_the_middle_is_lost),
    IN_FOLDER(a_training_recovers_when_it_is_a_third_of_a_point_away_at_most),
};
RUN_TESTS(tests)

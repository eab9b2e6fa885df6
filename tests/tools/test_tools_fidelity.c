/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What fidelity_bench is told and keeps: the grid, the file of results, tables and pictures of
 * them.
 */

#include "tests/support/unit_tests.h"
#include "tests/tools/fidelity_results.h"
#include "tools/fidelity/fidelity_plot.h"
#include "tools/fidelity/fidelity_table.h"

/* --------------------------------------------------------------------- grid */

static void every_cell_of_a_grid_is_there_once(void **state) {
  (void)state;
  fidelity_options o = parse((const char *const[]){NULL}, TOOL_RUN);
  size_t count = fidelity_cell_count(&o.grid);
  char(*keys)[FIDELITY_KEY_MAX] = calloc(count, sizeof *keys);
  assert_non_null(keys);
  assert_int_equal(count, 2 * 2 * 2 * 16 * 5);
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
  static const char *const words[] = {"--preset", "int8",      "--preset", "own=net=bf16 min=0",
                                      "--preset", "int2",      "--preset", "sign",
                                      "--preset", "lowrank:4", NULL};
  fidelity_options o = parse(words, TOOL_RUN);
  assert_int_equal(o.grid.preset_count, 6);
  assert_string_equal(o.grid.presets[1].name, "int8");
  assert_string_equal(o.grid.presets[1].policy, "net=int8");
  assert_string_equal(o.grid.presets[2].policy, "net=bf16 min=0");
  assert_string_equal(o.grid.presets[3].policy, "net=int2");
  assert_string_equal(o.grid.presets[4].policy, "net=sign");
  assert_string_equal(o.grid.presets[5].policy, "net=lowrank:4 warmup=50");
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

static void put_text(const char *path, const char *text) {
  FILE *file = fopen(path, "a");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static void results_are_found_again(void **state) {
  const char *path = path_in(state);
  fidelity_options o = parse(small_grid, TOOL_RUN);
  fidelity_cell one = fidelity_cell_at(&o.grid, 4), other = fidelity_cell_at(&o.grid, 5);
  put(path, &o.grid, 4, 0.875, 1e9 + 1);
  fidelity_store store = read_store(path);
  const fidelity_outcome *found = fidelity_store_find(&store, &one);
  assert_non_null(found);
  assert_true(found->accuracy == 0.875 && found->bytes == 1e9 + 1 && found->steps == 10);
  assert_true(found->seconds == 1 && found->processor_s == 2);
  assert_int_equal(found->curve_count, 2);
  assert_true(found->curve[0] == 2.0f && found->curve[1] == 0.875f);
  assert_null(fidelity_store_find(&store, &other));
  fidelity_store_free(&store);
}

/* A file may have been kept from before, when the library was another. */
static void the_last_result_of_a_cell_counts(void **state) {
  const char *path = path_in(state);
  fidelity_options o = parse(small_grid, TOOL_RUN);
  fidelity_cell cell = fidelity_cell_at(&o.grid, 4);
  put(path, &o.grid, 4, 0.25, 100);
  put(path, &o.grid, 4, 0.75, 50);
  put(path, &o.grid, 5, 0.5, 10);
  fidelity_store store = read_store(path);
  const fidelity_outcome *found = fidelity_store_find(&store, &cell);
  assert_true(found->accuracy == 0.75 && found->bytes == 50);
  fidelity_store_free(&store);
}

static void lines_that_are_not_whole_are_passed_over(void **state) {
  const char *path = path_in(state);
  fidelity_options o = parse(small_grid, TOOL_RUN);
  put_text(path, "not JSON\n{\"cell\": 7}\n{\"cell\": \"x\", \"accuracy\": null}\n");
  put(path, &o.grid, 0, 0.5, 100);
  put_text(path, "{\"cell\": \"y\", \"accur");
  fidelity_store store = read_store(path);
  assert_int_equal(store.count, 1);
  fidelity_store_free(&store);
}

static void a_missing_file_is_empty(void **state) {
  fidelity_store store = read_store(path_in(state));
  assert_int_equal(store.count, 0);
  fidelity_store_free(&store);
}

/* ------------------------------------------------------------------- output */

static char *text;

static void summarise_all(const char *path, fidelity_summary *all) {
  fidelity_options o = parse(small_grid, TOOL_RUN);
  fill_first_world(path, &o.grid);
  fidelity_store store = read_store(path);
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
  fidelity_summary all[6];
  summarise_all(path_in(state), all);
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
  fidelity_summary all[6];
  summarise_all(path_in(state), all);
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_cell_of_a_grid_is_there_once),
    cmocka_unit_test(a_key_holds_all_that_a_result_depends_on),
    cmocka_unit_test(the_reference_is_the_first_preset),
    cmocka_unit_test(known_presets_are_taken_by_name),
    cmocka_unit_test(seeds_are_a_count_or_a_range),
    cmocka_unit_test(what_makes_no_grid_is_refused),
    IN_FOLDER(results_are_found_again),
    IN_FOLDER(the_last_result_of_a_cell_counts),
    IN_FOLDER(lines_that_are_not_whole_are_passed_over),
    IN_FOLDER(a_missing_file_is_empty),
    IN_FOLDER(tables_say_what_was_trained_and_what_was_not),
    IN_FOLDER(pictures_have_a_panel_for_what_was_trained),
};
RUN_TESTS(tests)

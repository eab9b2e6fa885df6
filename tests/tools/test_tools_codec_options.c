/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The command line of codec_bench, and numbers with units. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/support/unit_tests.h"
#include "tools/codec/codec_options.h"
#include "tools/common/tool_units.h"

enum { WORDS_MAX = 80 };

static lcomm_bench_options options;
static char error[TOOL_ERROR_MAX];

/* Words are cut at blanks; '_' stands for a blank in a word. */
static tool_parse parse(const char *line) {
  static char text[4096];
  static char *words[WORDS_MAX];
  int count = 1;
  snprintf(text, sizeof text, "%s", line);
  words[0] = (char[]){"codec_bench"};
  for (char *word = strtok(text, " "); word != NULL && count + 1 < WORDS_MAX;
       word = strtok(NULL, " ")) {
    for (char *c = word; *c != '\0'; c++) {
      *c = *c == '_' ? ' ' : *c;
    }
    words[count++] = word;
  }
  words[count] = NULL;
  error[0] = '\0';
  return lcomm_bench_options_parse(count, words, &options, error);
}

static void nothing_given_measures_all_codecs_on_synthetic_values(void **state) {
  (void)state;
  assert_int_equal(parse(""), TOOL_RUN);
  assert_true(options.codec_count > 10);
  assert_true(options.synthetic_wanted);
  assert_true(options.quality && options.speed && !options.per_tensor && !options.baselines);
  assert_int_equal(options.path_count, 0);
  assert_int_equal(options.size_count, 2);
  assert_int_equal(options.sizes[0], 256 << 10);
  assert_int_equal(options.sizes[1], 256 << 20);
  assert_int_equal(options.threads, 1);
  assert_int_equal(options.table_count, 1);
  assert_ptr_equal(options.tables[0], lcomm_kernels_best());
  assert_int_equal(parse("--isa all"), TOOL_RUN);
  assert_ptr_equal(options.tables[options.table_count - 1], lcomm_kernels_best());
}

static void codecs_are_taken_in_their_order(void **state) {
  (void)state;
  assert_int_equal(parse("-c int8 --codec topk:0.01+ef -c fp8e4m3:block=32,stochastic+ef+zstd"),
                   TOOL_RUN);
  assert_int_equal(options.codec_count, 3);
  assert_string_equal(options.codecs[0].text, "int8");
  assert_string_equal(options.codecs[1].text, "topk:0.01+ef");
  assert_true(options.codecs[1].choice.error_feedback);
  assert_string_equal(options.codecs[2].text, "fp8e4m3:block=32,stochastic+ef+zstd");
}

static void a_matrix_is_measured_instead_of_codecs(void **state) {
  (void)state;
  assert_int_equal(parse("--low-rank 4096x1024:4"), TOOL_RUN);
  assert_int_equal(options.matrix.rows, 4096);
  assert_int_equal(options.matrix.columns, 1024);
  assert_int_equal(options.matrix.rank, 4);
  static const char *const bad[] = {
      "",       "4096",    "4096x1024",  "4096x1024:",       "x1024:4",
      "0x16:1", "16x16:0", "16x16:4096", "16x16:4:4",        "16x16x16:4",
      "-1x2:1", "16X16:1", "1Mx1M:1",    "1048576x1048576:1"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char line[128];
    snprintf(line, sizeof line, "--low-rank=%s", bad[i]);
    assert_int_equal(parse(line), TOOL_USAGE);
    assert_non_null(strstr(error, "--low-rank 4096x1024:4"));
  }
  assert_int_equal(parse("--low-rank 16x16:1 -c int8"), TOOL_USAGE);
  assert_int_equal(parse("--low-rank 16x16:1 file.f32"), TOOL_USAGE);
  assert_int_equal(parse("--low-rank 16x16:1 --json out"), TOOL_USAGE);
}

static void a_rank_alone_is_for_steps_of_gradients(void **state) {
  static const char *const bad[] = {"--low-rank 4",
                                    "--low-rank 4 file.f32",
                                    "--low-rank 4 --steps 20",
                                    "--low-rank 4 --steps 20 -c int8 file.f32",
                                    "--low-rank 4 --steps 20 --json out file.f32",
                                    "--low-rank 4 --steps 20 --export out file.f32"};
  (void)state;
  assert_int_equal(parse("--low-rank 4 --steps 20 file.f32"), TOOL_RUN);
  assert_int_equal(options.matrix.rank, 4);
  assert_int_equal(options.matrix.rows, 0);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(parse(bad[i]), TOOL_USAGE);
    assert_non_null(strstr(error, "--low-rank"));
  }
}

static void of_a_policy_its_codec_on_the_network_is_taken(void **state) {
  (void)state;
  assert_int_equal(parse("-p net=topk:0.01+ef_scope=bucket_min=1M --policy net=bf16"), TOOL_RUN);
  assert_int_equal(options.codec_count, 2);
  assert_int_equal(options.codecs[0].scope, LCOMM_SCOPE_BUCKET);
  assert_string_equal(options.codecs[0].text, "topk:0.01+ef scope=bucket");
  assert_string_equal(options.codecs[1].text, "bf16");
}

static void paths_and_options_come_in_any_order(void **state) {
  (void)state;
  assert_int_equal(parse("one.f32 --predict 25Gbit 16 two.npy -n 3 three"), TOOL_RUN);
  assert_int_equal(options.path_count, 3);
  assert_string_equal(options.paths[0], "one.f32");
  assert_string_equal(options.paths[1], "two.npy");
  assert_string_equal(options.paths[2], "three");
  assert_false(options.synthetic_wanted);
  assert_int_equal(options.nodes, 16);
  assert_true(options.bandwidth > 3.12499e9 && options.bandwidth < 3.12501e9);
  assert_int_equal(options.repetitions, 3);
}

static void memory_and_owners_can_be_chosen(void **state) {
  (void)state;
  assert_int_equal(parse("-c int8"), TOOL_RUN);
  assert_int_equal(options.pages, TOOL_PAGES_HUGE);
  assert_int_equal(options.owners, 1);
  assert_int_equal(parse("--pages usual --owners 4 -c topk:0.01+ef"), TOOL_RUN);
  assert_int_equal(options.pages, TOOL_PAGES_USUAL);
  assert_int_equal(options.owners, 4);
}

static void a_distribution_can_have_a_count_and_a_seed(void **state) {
  (void)state;
  assert_int_equal(parse("--synthetic normal:64K --seed 5"), TOOL_RUN);
  assert_int_equal(options.synthetic.kind, LCOMM_SYNTHETIC_NORMAL);
  assert_int_equal(options.synthetic.count, 65536);
  assert_int_equal(options.synthetic.seed, 5);
  assert_int_equal(parse("--synthetic bits some.f32"), TOOL_RUN);
  assert_true(options.synthetic_wanted);
  assert_int_equal(options.path_count, 1);
}

static void sizes_are_sorted_and_whole_pages(void **state) {
  (void)state;
  assert_int_equal(parse("--size 1G,5000,64KiB"), TOOL_RUN);
  assert_int_equal(options.size_count, 3);
  assert_int_equal(options.sizes[0], 4096);
  assert_int_equal(options.sizes[1], 65536);
  assert_int_equal(options.sizes[2], 1 << 30);
}

static void tables_are_taken_in_their_own_order(void **state) {
  (void)state;
  assert_int_equal(parse("--isa scalar"), TOOL_RUN);
  assert_int_equal(options.table_count, 1);
  assert_string_equal(options.tables[0]->name, "scalar");
  char list[64];
  snprintf(list, sizeof list, "--isa %s,scalar", lcomm_kernels_best()->name);
  assert_int_equal(parse(list), TOOL_RUN);
  assert_string_equal(options.tables[0]->name, "scalar");
  assert_ptr_equal(options.tables[options.table_count - 1], lcomm_kernels_best());
}

static void help_wins(void **state) {
  (void)state;
  assert_int_equal(parse("--help --frobnicate"), TOOL_HELP);
}

static void every_mistake_has_a_sentence_that_names_it(void **state) {
  (void)state;
  static const struct {
    const char *line, *word;
  } mistakes[] = {{"--frobnicate", "--frobnicate"},
                  {"-c", "-c"},
                  {"-c int9", "int9"},
                  {"-c ''", "codec"},
                  {"-p net=int9", "int9"},
                  {"--synthetic gauss", "gauss"},
                  {"--synthetic normal:", "''"},
                  {"--synthetic normal:many", "many"},
                  {"--synthetic normal:0", "normal:0"},
                  {"--seed -1", "-1"},
                  {"--size 1", "'1'"},
                  {"--size 256K,", "256K,"},
                  {"--size ,256K", ",256K"},
                  {"--size 4K,4K,4K,4K,4K", "4K,4K,4K,4K,4K"},
                  {"--size 16G", "16G"},
                  {"--isa avx1024", "avx1024"},
                  {"--isa scalar,", "scalar,"},
                  {"--pages small", "small"},
                  {"--owners 0", "owners"},
                  {"--owners 65", "65"},
                  {"--owners 4 --peers 3", "peers"},
                  {"--owners 4 -c topk:0.01+zstd", "zstd"},
                  {"--threads 0", "threads"},
                  {"--threads two", "two"},
                  {"-n 0", "repetitions"},
                  {"-n 1001", "1001"},
                  {"--peers 65", "65"},
                  {"--steps 0", "steps"},
                  {"--predict", "--predict"},
                  {"--predict 25", "'25'"},
                  {"--predict 25Gbit", "nodes"},
                  {"--predict 25Gbit 1", "'1'"},
                  {"--predict 25Gbit -n", "-n"},
                  {"--plot plot.gif", "plot.gif"},
                  {"--plot .png", ".png"},
                  {"--no-quality --no-speed", "nothing"},
                  {"--no-quality --per-tensor", "per-tensor"},
                  {"--no-quality --steps 3", "steps"},
                  {"--no-speed --peers 3", "peers"},
                  {"--no-speed --baselines", "baselines"},
                  {"--no-speed --predict 1Gbit 2", "predict"},
                  {"--no-quality --plot a.png", "plot"},
                  {"--layers list.txt", "layers"}};
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    assert_int_equal(parse(mistakes[i].line), TOOL_USAGE);
    if (!strstr(error, mistakes[i].word)) {
      fail_msg("'%s' is answered with: %s", mistakes[i].line, error);
    }
  }
}

static void more_codecs_than_fit_are_refused(void **state) {
  (void)state;
  static char name[] = "codec_bench", codec[] = "-cint8";
  static char *words[LCOMM_BENCH_CODECS_MAX + 3];
  words[0] = name;
  for (int i = 1; i <= LCOMM_BENCH_CODECS_MAX + 1; i++) {
    words[i] = codec;
  }
  assert_int_equal(lcomm_bench_options_parse(LCOMM_BENCH_CODECS_MAX + 1, words, &options, error),
                   TOOL_RUN);
  assert_int_equal(lcomm_bench_options_parse(LCOMM_BENCH_CODECS_MAX + 2, words, &options, error),
                   TOOL_USAGE);
  assert_non_null(strstr(error, "too many"));
}

static void sizes_have_units_of_1024(void **state) {
  (void)state;
  uint64_t size = 0;
  assert_true(tool_units_read_size("4096", &size) && size == 4096);
  assert_true(tool_units_read_size("3K", &size) && size == 3072);
  assert_true(tool_units_read_size("2MiB", &size) && size == 2 << 20);
  assert_true(tool_units_read_size("1GB", &size) && size == 1 << 30);
  static const char *const wrong[] = {"",        "K",   "-1",  "1.5K",  "1T",
                                      "1Kb",     "1 K", "12B", "4MiBs", "99999999999999999999",
                                      "2000000G"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    if (tool_units_read_size(wrong[i], &size)) {
      fail_msg("'%s' was read as a size", wrong[i]);
    }
  }
}

static void bandwidths_are_bits_or_bytes(void **state) {
  (void)state;
  static const struct {
    const char *text;
    double bytes;
  } good[] = {{"200mbit", 25e6}, {"25Gbit", 3.125e9}, {"25Gbit/s", 3.125e9}, {"5GB", 5e9},
              {"1.5kB/s", 1500}, {"8bit", 1.0},       {"1Tbit", 1.25e11}};
  double bytes = 0.0;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    assert_true(tool_units_read_bandwidth(good[i].text, &bytes));
    assert_true(bytes > 0.999999 * good[i].bytes && bytes < 1.000001 * good[i].bytes);
  }
  static const char *const wrong[] = {"",        "25",   "25G",     "Gbit", "0Gbit",     "-1Gbit",
                                      "25Gbits", "25Gb", "25Gbit/", "nan",  "1e999Gbit", "inf"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    if (tool_units_read_bandwidth(wrong[i], &bytes)) {
      fail_msg("'%s' was read as a bandwidth", wrong[i]);
    }
  }
}

static void numbers_are_written_with_fitting_units(void **state) {
  (void)state;
  char text[TOOL_UNITS_TEXT_MAX];
  assert_string_equal(tool_units_bytes(262144, text), "256 KiB");
  assert_string_equal(tool_units_bytes(1000, text), "1000 B");
  assert_string_equal(tool_units_bytes(UINT64_C(3) << 29, text), "1.5 GiB");
  assert_string_equal(tool_units_bandwidth(3.125e9, text), "25 Gbit/s");
  assert_string_equal(tool_units_bandwidth(25e6, text), "200 Mbit/s");
  assert_string_equal(tool_units_seconds(1.234, text), "1.23 s");
  assert_string_equal(tool_units_seconds(0.0456, text), "45.6 ms");
  assert_string_equal(tool_units_seconds(17e-6, text), "17 us");
  assert_string_equal(tool_units_seconds(0.9999, text), "1 s");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_given_measures_all_codecs_on_synthetic_values),
    cmocka_unit_test(codecs_are_taken_in_their_order),
    cmocka_unit_test(a_matrix_is_measured_instead_of_codecs),
    cmocka_unit_test(a_rank_alone_is_for_steps_of_gradients),
    cmocka_unit_test(of_a_policy_its_codec_on_the_network_is_taken),
    cmocka_unit_test(paths_and_options_come_in_any_order),
    cmocka_unit_test(memory_and_owners_can_be_chosen),
    cmocka_unit_test(a_distribution_can_have_a_count_and_a_seed),
    cmocka_unit_test(sizes_are_sorted_and_whole_pages),
    cmocka_unit_test(tables_are_taken_in_their_own_order),
    cmocka_unit_test(help_wins),
    cmocka_unit_test(every_mistake_has_a_sentence_that_names_it),
    cmocka_unit_test(more_codecs_than_fit_are_refused),
    cmocka_unit_test(sizes_have_units_of_1024),
    cmocka_unit_test(bandwidths_are_bits_or_bytes),
    cmocka_unit_test(numbers_are_written_with_fitting_units),
};
RUN_TESTS(tests)

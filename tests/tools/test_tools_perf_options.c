/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The command line of allreduce_perf and its siblings. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/unit_tests.h"
#include "tests/support/written_text.h"
#include "tools/perf/perf_options.h"
#include "tools/perf/perf_values.h"

enum { WORDS_MAX = 80 };

static lcomm_perf_options options;
static char error[TOOL_ERROR_MAX];

/* Words are cut at blanks; '_' stands for a blank in a word, and '' for none. */
static tool_parse parse_for(lcomm_perf_kind kind, const char *line) {
  static char text[4096];
  static char *words[WORDS_MAX];
  int count = 1;
  snprintf(text, sizeof text, "%s", line);
  words[0] = (char[]){"perf"};
  for (char *word = strtok(text, " "); word != NULL && count + 1 < WORDS_MAX;
       word = strtok(NULL, " ")) {
    for (char *c = word; *c != '\0' && word[0] != '-'; c++) {
      *c = *c == '_' ? ' ' : *c;
    }
    words[count++] = strcmp(word, "''") == 0 ? word + 2 : word;
  }
  words[count] = NULL;
  error[0] = '\0';
  return lcomm_perf_options_parse(count, words, lcomm_perf_collective_of(kind), &options, error);
}

static tool_parse parse(const char *line) {
  return parse_for(LCOMM_PERF_ALLREDUCE, line);
}

static void nothing_given_measures_one_exact_size_in_place(void **state) {
  (void)state;
  assert_int_equal(parse(""), TOOL_RUN);
  assert_int_equal(options.sizes.min_bytes, 1 << 20);
  assert_int_equal(options.sizes.max_bytes, 1 << 20);
  assert_int_equal(options.sampling.iterations, 5);
  assert_int_equal(options.sampling.warmups, 1);
  assert_int_equal(options.policy_count, 1);
  assert_string_equal(options.policies[0], "");
  assert_int_equal(options.dtype_count, 1);
  assert_int_equal(options.dtypes[0], LCOMM_FLOAT32);
  assert_int_equal(options.op_count, 1);
  assert_int_equal(options.ops[0], LCOMM_SUM);
  assert_true(options.in_place);
  assert_int_equal(options.boot, LCOMM_PERF_BOOT_MPI);
  assert_int_equal(options.progress, LCOMM_PROGRESS_DEFAULT);
  assert_int_equal(options.sampling.batch, 0);
  assert_false(options.check || options.overlap.wanted || options.against_mpi || options.tensors);
}

static void an_all_to_all_has_two_buffers_unless_asked_otherwise(void **state) {
  (void)state;
  assert_int_equal(parse_for(LCOMM_PERF_ALLTOALL, ""), TOOL_RUN);
  assert_false(options.in_place);
  assert_int_equal(parse_for(LCOMM_PERF_ALLTOALL, "--in-place"), TOOL_RUN);
  assert_true(options.in_place);
  assert_int_equal(parse_for(LCOMM_PERF_ALLGATHER, "--no-in-place"), TOOL_RUN);
  assert_false(options.in_place);
}

static void letters_and_words_mean_what_they_mean_in_nccl_tests(void **state) {
  static const char *const lines[] = {
      "-b 8 -e 128M -f 4 -n 20 -w 2 -o max -d double -c 1 -p net=int8",
      "--minbytes 8 --maxbytes=128M --stepfactor 4 --iters 20 --warmup_iters 2 --op max "
      "--datatype float64 --check=1 --policy net=int8"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(parse(lines[i]), TOOL_RUN);
    assert_int_equal(options.sizes.min_bytes, 8);
    assert_int_equal(options.sizes.max_bytes, 128 << 20);
    assert_true(options.sizes.factor == 4.0);
    assert_int_equal(options.sampling.iterations, 20);
    assert_int_equal(options.sampling.warmups, 2);
    assert_int_equal(options.op_count, 1);
    assert_int_equal(options.ops[0], LCOMM_MAX);
    assert_int_equal(options.dtype_count, 1);
    assert_int_equal(options.dtypes[0], LCOMM_FLOAT64);
    assert_true(options.check);
    assert_string_equal(options.policies[0], "net=int8");
  }
}

static void check_stands_alone_or_has_a_number(void **state) {
  (void)state;
  assert_int_equal(parse("-c -n 3"), TOOL_RUN);
  assert_true(options.check);
  assert_int_equal(options.sampling.iterations, 3);
  assert_int_equal(parse("-c 0"), TOOL_RUN);
  assert_false(options.check);
  assert_int_equal(parse("-c1"), TOOL_RUN);
  assert_true(options.check);
  assert_int_equal(parse("-n 3 -c"), TOOL_RUN);
  assert_true(options.check);
}

static void all_stands_for_every_operation_and_type(void **state) {
  (void)state;
  assert_int_equal(parse("-o all -d all"), TOOL_RUN);
  assert_int_equal(options.op_count, 4);
  assert_int_equal(options.dtype_count, 8);
  for (int d = 0; d < 8; d++) {
    assert_int_equal(options.dtypes[d], d);
  }
  assert_int_equal(parse_for(LCOMM_PERF_ALLGATHER, "-o all"), TOOL_RUN);
  assert_int_equal(options.op_count, 1);
  assert_int_equal(parse_for(LCOMM_PERF_BROADCAST, "-r all"), TOOL_RUN);
  assert_int_equal(options.root, LCOMM_PERF_ROOT_ALL);
}

static void types_have_the_names_of_both_libraries(void **state) {
  static const char *const names[][2] = {
      {"float", "float32"}, {"half", "float16"}, {"double", "float64"}, {"int", "int32"}};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char line[40];
    snprintf(line, sizeof line, "-d %s", names[i][0]);
    assert_int_equal(parse(line), TOOL_RUN);
    assert_string_equal(lcomm_dtype_name(options.dtypes[0]), names[i][1]);
  }
}

static void policies_keep_their_order(void **state) {
  (void)state;
  assert_int_equal(parse("-p '' -p net=int8 --policy net=topk:0.01+ef_min=0"), TOOL_RUN);
  assert_int_equal(options.policy_count, 3);
  assert_string_equal(options.policies[0], "");
  assert_string_equal(options.policies[1], "net=int8");
  assert_string_equal(options.policies[2], "net=topk:0.01+ef min=0");
}

static void sixteen_policies_fit_and_no_more(void **state) {
  char line[400] = "";
  (void)state;
  for (int p = 0; p < LCOMM_PERF_POLICIES_MAX; p++) {
    strcat(line, "-p net=int8 ");
  }
  assert_int_equal(parse(line), TOOL_RUN);
  assert_int_equal(options.policy_count, LCOMM_PERF_POLICIES_MAX);
  assert_int_equal(parse(strcat(line, "-p net=bf16")), TOOL_USAGE);
}

static void the_other_options_are_read(void **state) {
  (void)state;
  assert_int_equal(parse("--transport shm,mpi --progress thread --boot env --batch 7 --json a.json "
                         "--percentiles --tensors-count 3 --interface eth0"),
                   TOOL_RUN);
  assert_string_equal(options.transport, "shm,mpi");
  assert_int_equal(options.progress, LCOMM_PROGRESS_THREAD);
  assert_int_equal(options.boot, LCOMM_PERF_BOOT_ENV);
  assert_int_equal(options.sampling.batch, 7);
  assert_string_equal(options.json_path, "a.json");
  assert_true(options.percentiles);
  assert_true(options.tensors);
  assert_int_equal(options.tensor_count, 3);
  assert_string_equal(options.interface_name, "eth0");
  assert_int_equal(parse("--progress calls --boot mpi"), TOOL_RUN);
  assert_int_equal(options.progress, LCOMM_PROGRESS_CALLS);
}

static void a_computation_is_a_share_or_a_time(void **state) {
  (void)state;
  assert_int_equal(parse("--overlap 0.5"), TOOL_RUN);
  assert_true(options.overlap.wanted);
  assert_true(options.overlap.share == 0.5 && options.overlap.seconds == 0.0);
  assert_int_equal(parse("--overlap 20ms"), TOOL_RUN);
  assert_true(options.overlap.share == 0.0 && options.overlap.seconds == 20e-3);
}

static void lateness_is_a_time(void **state) {
  (void)state;
  assert_int_equal(parse(""), TOOL_RUN);
  assert_true(options.sampling.late_s == 0.0);
  assert_int_equal(parse("--late 2.5ms"), TOOL_RUN);
  assert_true(options.sampling.late_s == 2.5e-3);
}

static void buffers_are_of_malloc_or_of_the_library(void **state) {
  (void)state;
  assert_int_equal(parse(""), TOOL_RUN);
  assert_false(options.libcomm_memory);
  assert_int_equal(parse("--memory libcomm"), TOOL_RUN);
  assert_true(options.libcomm_memory);
  assert_int_equal(parse("--memory malloc"), TOOL_RUN);
  assert_false(options.libcomm_memory);
  assert_int_equal(parse("--memory mine"), TOOL_USAGE);
}

static void through_mpi_there_is_no_policy(void **state) {
  (void)state;
  assert_int_equal(parse("--through mpi --against mpi -b 8 -e 64 -c"), TOOL_RUN);
  assert_true(options.through_mpi && options.against_mpi);
  assert_int_equal(options.policy_count, 0);
  assert_int_equal(parse_for(LCOMM_PERF_ALLTOALL, "--through=mpi --json a --percentiles"),
                   TOOL_RUN);
  assert_true(options.through_mpi);
  assert_int_equal(parse("--through libcomm"), TOOL_RUN);
  assert_false(options.through_mpi);
  assert_int_equal(options.policy_count, 1);
}

static void sizes_go_on_by_a_factor_or_by_steps(void **state) {
  (void)state;
  assert_int_equal(parse("-b 100 -f 1.5"), TOOL_RUN);
  assert_int_equal(lcomm_perf_next_size(&options, 100), 150);
  assert_int_equal(lcomm_perf_next_size(&options, 0), 1);
  assert_int_equal(lcomm_perf_next_size(&options, 1), 2);
  assert_true(lcomm_perf_next_size(&options, UINT64_C(1) << 50) > UINT64_C(1) << 50);
  assert_int_equal(parse("-b 100 -i 4K"), TOOL_RUN);
  assert_int_equal(lcomm_perf_next_size(&options, 100), 4196);
  assert_int_equal(parse("-b 6G -e 24G"), TOOL_RUN);
  assert_true(options.sizes.max_bytes == UINT64_C(24) << 30);
}

static void help_wins(void **state) {
  (void)state;
  assert_int_equal(parse("-h --frobnicate"), TOOL_HELP);
}

static void help_names_what_belongs_to_the_collective(void **state) {
  (void)state;
  for (int kind = LCOMM_PERF_ALLREDUCE; kind <= LCOMM_PERF_ALLTOALL; kind++) {
    const lcomm_perf_collective *collective = lcomm_perf_collective_of((lcomm_perf_kind)kind);
    char *text = NULL;
    FILE *file = open_text(&text);
    lcomm_perf_help(file, collective);
    fclose(file);
    assert_non_null(strstr(text, collective->tool));
    assert_non_null(strstr(text, collective->mpi_name));
    assert_non_null(strstr(text, collective->pmpi_name));
    assert_non_null(strstr(text, "--through"));
    assert_int_equal(strstr(text, "--op") != NULL, collective->reduces);
    assert_int_equal(strstr(text, "--root") != NULL, collective->has_root);
    assert_int_equal(strstr(text, "--tensors") != NULL, kind == LCOMM_PERF_ALLREDUCE);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
      assert_true(strlen(line) <= 100);
    }
    free(text);
  }
}

static const struct {
  lcomm_perf_kind kind;
  const char *line;
  const char *word; /* in the sentence */
} mistakes[] = {
    {LCOMM_PERF_ALLREDUCE, "--frobnicate", "frobnicate"},
    {LCOMM_PERF_ALLREDUCE, "-b", "-b"},
    {LCOMM_PERF_ALLREDUCE, "--percentiles -xc", "-x"},
    {LCOMM_PERF_ALLREDUCE, "--iters", "--iters"},
    {LCOMM_PERF_ALLREDUCE, "--tensors=3", "--tensors=3"},
    {LCOMM_PERF_ALLREDUCE, "left over", "left"},
    {LCOMM_PERF_ALLREDUCE, "-b -4", "-4"},
    {LCOMM_PERF_ALLREDUCE, "-b 4X", "4X"},
    {LCOMM_PERF_ALLREDUCE, "-b 4KB", "4KB"},
    {LCOMM_PERF_ALLREDUCE, "-e 99999999999999999999", "99999999999999999999"},
    {LCOMM_PERF_ALLREDUCE, "-e 9999999G", "9999999G"},
    {LCOMM_PERF_ALLREDUCE, "-i 0", "-i"},
    {LCOMM_PERF_ALLREDUCE, "-f 1", "-f"},
    {LCOMM_PERF_ALLREDUCE, "-f nan", "nan"},
    {LCOMM_PERF_ALLREDUCE, "-f inf", "inf"},
    {LCOMM_PERF_ALLREDUCE, "-f 2 -i 8", "--stepbytes"},
    {LCOMM_PERF_ALLREDUCE, "-n 0", "-n"},
    {LCOMM_PERF_ALLREDUCE, "-w -1", "-1"},
    {LCOMM_PERF_ALLREDUCE, "-n 2000000", "2000000"},
    {LCOMM_PERF_ALLREDUCE, "--batch 0", "--batch"},
    {LCOMM_PERF_ALLREDUCE, "-o prod", "prod"},
    {LCOMM_PERF_ALLREDUCE, "-d int7", "int7"},
    {LCOMM_PERF_ALLREDUCE, "-c 12345678901", "12345678901"},
    {LCOMM_PERF_ALLREDUCE, "--check=no", "no"},
    {LCOMM_PERF_ALLREDUCE, "--progress sometimes", "sometimes"},
    {LCOMM_PERF_ALLREDUCE, "--boot ssh", "ssh"},
    {LCOMM_PERF_ALLREDUCE, "--against nccl", "nccl"},
    {LCOMM_PERF_ALLREDUCE, "--against mpi --boot env", "--boot env"},
    {LCOMM_PERF_ALLREDUCE, "--against mpi -d half", "float16"},
    {LCOMM_PERF_REDUCE_SCATTER, "--against mpi -d bfloat16", "bfloat16"},
    {LCOMM_PERF_ALLREDUCE, "--through pmpi", "pmpi"},
    {LCOMM_PERF_ALLREDUCE, "--through", "--through"},
    {LCOMM_PERF_ALLREDUCE, "--through mpi --boot env", "--boot env"},
    {LCOMM_PERF_ALLREDUCE, "--through mpi -p net=int8", "--policy"},
    {LCOMM_PERF_ALLREDUCE, "--through mpi --transport shm", "--transport"},
    {LCOMM_PERF_ALLREDUCE, "--through mpi --progress calls", "--progress"},
    {LCOMM_PERF_ALLREDUCE, "--through mpi --tensors", "--tensors"},
    {LCOMM_PERF_ALLREDUCE, "--through mpi --overlap 1", "--overlap"},
    {LCOMM_PERF_ALLREDUCE, "--through mpi -d half", "float16"},
    {LCOMM_PERF_ALLREDUCE, "--overlap 0", "--overlap"},
    {LCOMM_PERF_ALLREDUCE, "--overlap ms", "ms"},
    {LCOMM_PERF_ALLREDUCE, "--overlap 5s", "5s"},
    {LCOMM_PERF_ALLREDUCE, "--overlap 1 --against mpi", "--against"},
    {LCOMM_PERF_ALLREDUCE, "--overlap 1 --batch 2", "--batch"},
    {LCOMM_PERF_ALLREDUCE, "--late 0ms", "0ms"},
    {LCOMM_PERF_ALLREDUCE, "--late 5", "5"},
    {LCOMM_PERF_ALLREDUCE, "--late 5ms --batch 2", "--batch"},
    {LCOMM_PERF_ALLREDUCE, "--late 5ms --overlap 1", "--late"},
    {LCOMM_PERF_ALLREDUCE, "--data a.f32 -c", "--check"},
    {LCOMM_PERF_ALLREDUCE, "--data a.f32 -d double", "float32"},
    {LCOMM_PERF_ALLREDUCE, "--interface ../../etc", "--interface"},
    {LCOMM_PERF_ALLREDUCE, "--interface a/b", "a/b"},
    {LCOMM_PERF_ALLREDUCE, "--tensors -o min", "min"},
    {LCOMM_PERF_ALLREDUCE, "--tensors --no-in-place", "--no-in-place"},
    {LCOMM_PERF_ALLREDUCE, "--tensors-count 0", "--tensors-count"},
    {LCOMM_PERF_ALLGATHER, "--tensors", "allreduce_perf"},
    {LCOMM_PERF_BROADCAST, "--no-in-place", "--no-in-place"},
    {LCOMM_PERF_BROADCAST, "-r -1", "-1"},
    {LCOMM_PERF_BROADCAST, "--root first", "first"},
};

static void every_mistake_has_one_sentence_that_names_it(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
    if (parse_for(mistakes[i].kind, mistakes[i].line) != TOOL_USAGE) {
      fail_msg("'%s' was taken", mistakes[i].line);
    }
    if (!strstr(error, mistakes[i].word) || strchr(error, '\n')) {
      fail_msg("'%s' has the sentence '%s'", mistakes[i].line, error);
    }
  }
}

static void mpi_moves_what_it_cannot_sum(void **state) {
  (void)state;
  assert_int_equal(parse_for(LCOMM_PERF_ALLGATHER, "--against mpi -d half"), TOOL_RUN);
  assert_int_equal(parse("--against mpi -d all"), TOOL_RUN);
}

static void of_a_mistake_the_boot_is_known(void **state) {
  (void)state;
  assert_int_equal(parse("--boot env --frobnicate"), TOOL_USAGE);
  assert_int_equal(options.boot, LCOMM_PERF_BOOT_ENV);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_given_measures_one_exact_size_in_place),
    cmocka_unit_test(an_all_to_all_has_two_buffers_unless_asked_otherwise),
    cmocka_unit_test(letters_and_words_mean_what_they_mean_in_nccl_tests),
    cmocka_unit_test(check_stands_alone_or_has_a_number),
    cmocka_unit_test(all_stands_for_every_operation_and_type),
    cmocka_unit_test(types_have_the_names_of_both_libraries),
    cmocka_unit_test(policies_keep_their_order),
    cmocka_unit_test(sixteen_policies_fit_and_no_more),
    cmocka_unit_test(the_other_options_are_read),
    cmocka_unit_test(a_computation_is_a_share_or_a_time),
    cmocka_unit_test(lateness_is_a_time),
    cmocka_unit_test(buffers_are_of_malloc_or_of_the_library),
    cmocka_unit_test(through_mpi_there_is_no_policy),
    cmocka_unit_test(sizes_go_on_by_a_factor_or_by_steps),
    cmocka_unit_test(help_wins),
    cmocka_unit_test(help_names_what_belongs_to_the_collective),
    cmocka_unit_test(every_mistake_has_one_sentence_that_names_it),
    cmocka_unit_test(mpi_moves_what_it_cannot_sum),
    cmocka_unit_test(of_a_mistake_the_boot_is_known),
};
RUN_TESTS(tests)

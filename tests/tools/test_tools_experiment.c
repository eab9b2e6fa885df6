/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Experiments: the file, the runs it makes, what their results come to, and what is said of it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/experiment_made.h"
#include "tests/support/unit_tests.h"
#include "tools/experiment/experiment_answer.h"
#include "tools/experiment/experiment_estimate.h"
#include "tools/experiment/experiment_file.h"
#include "tools/experiment/experiment_matrix.h"
#include "tools/experiment/experiment_process.h"
#include "tools/experiment/experiment_programs.h"
#include "tools/experiment/experiment_report.h"

static experiment_file file;
static char error[EXPERIMENT_ERROR_MAX];

static bool parse(const char *text) {
  return experiment_file_parse(text, strlen(text), &file, error);
}

static const char good[] = "# a comment\n"
                           "[experiment]\n"
                           "title = two things\r\n"
                           "seed = 7\n"
                           "limit = 2m\n"
                           "accuracy = 80%\n"
                           "\n"
                           "[run links]\n"
                           "  program = train\n"
                           "options = --images 640 --epochs 1\n"
                           "where = cluster\n"
                           "policies = exact | net=int8 | net[a,b]=bf16 net=topk:0.01+ef\n"
                           "rates = 1gbit, 50mbit\n"
                           "delays = 0ms, 20ms\n"
                           "worlds = 2x1, 4x2\n"
                           "models = mlp\n"
                           "seeds = 1, 2\n"
                           "repetitions = 2\n"
                           "[run posed]\n"
                           "program = allreduce_perf\n"
                           "where = pose\n";

/* ---------------------------------------------------------------------- file */

static void a_file_is_read(void **state) {
  (void)state;
  assert_true(parse(good));
  assert_string_equal(file.title, "two things");
  assert_int_equal(file.seed, 7);
  assert_true(fabs(file.limit_s - 120.0) < 1e-9 && fabs(file.accuracy - 0.8) < 1e-9);
  assert_int_equal(file.workload_count, 2);
  const experiment_workload *run = &file.workloads[0];
  assert_int_equal(run->policies.count, 3);
  assert_string_equal(run->policies.words[0], "");
  assert_string_equal(run->policies.words[2], "net[a,b]=bf16 net=topk:0.01+ef");
  assert_string_equal(run->rates.words[1], "50mbit");
  assert_true(fabs(run->delays_ms.numbers[1] - 20.0) < 1e-9);
  assert_int_equal(run->worlds[1].hosts, 4);
  assert_int_equal(run->worlds[1].ranks, 2);
  assert_int_equal(file.workloads[1].where, EXPERIMENT_POSE);
  assert_int_equal(file.workloads[1].policies.count, 1);
}

#define RUN "[run a]\nprogram = train\nrates = 1gbit\n"

static void a_mistake_is_told_with_its_line(void **state) {
  static const struct {
    const char *text, *line, *word;
  } mistakes[] = {
      {"", "line 0", "nothing to run"},
      {"[experiment]\ntitle = a\nspeed = 3\n", "line 3", "'speed'"},
      {RUN "polices = exact\n", "line 4", "one of program, options"},
      {RUN "rates = 2gbit\n", "line 4", "a second time"},
      {RUN "worlds = 2y1\n", "line 4", "'2y1'"},
      {RUN "worlds = 65x1\n", "line 4", "HOSTSxRANKS"},
      {RUN "seeds = 1, 1\n", "line 4", "'1, 1'"},
      {RUN "delays = 20\n", "line 4", "20ms"},
      {RUN "policies = exact |\n", "line 4", "policies"},
      {RUN "where = moon\n", "line 4", "cluster, pose, hosts or slurm"},
      {"[run a]\nprogram = train\nrates = fast\n", "line 3", "'fast'"},
      {"[run a]\nprogram = train\n", "line 2", "no rates"},
      {"[run a]\nprogram = train\nwhere = pose\nrates = 1gbit\n", "line 4", "where = cluster"},
      {"[run a]\nprogram = train\nwhere = hosts\n", "line 3", "hostfile"},
      {"[run a]\nrates = 1gbit\n", "line 2", "no program"},
      {RUN "[run a]\n", "line 4", "a second section"},
      {"[run a b]\n", "line 1", "'a b'"},
      {"[walk a]\n", "line 1", "[run NAME]"},
      {"[experiment\n", "line 1", "]"},
      {"title = a\n", "line 1", "before the first section"},
      {"[experiment]\nhello\n", "line 2", "key = value"},
      {"[experiment]\nlimit = 2 days\n", "line 2", "90s"},
      {"[experiment]\naccuracy = 120%\n", "line 2", "80%"},
      {"[experiment]\ntitle = a\x01\n", "line 2", "text"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
    if (parse(mistakes[i].text) ||
        strncmp(error, mistakes[i].line, strlen(mistakes[i].line)) != 0 ||
        !strstr(error, mistakes[i].word)) {
      fail_msg("\"%s\" said: %s", mistakes[i].text, error);
    }
  }
}

static void a_file_that_is_not_there_is_named(void **state) {
  (void)state;
  assert_false(experiment_file_read("there/is/none.ini", &file, error));
  assert_non_null(strstr(error, "there/is/none.ini: cannot be read"));
}

static void ready_made_files_are_right(void **state) {
  static const char *const names[] = {"quick",   "link-rates",   "policies",    "time-to-accuracy",
                                      "scaling", "cross-region", "collectives", "pipeline",
                                      "servers", "stragglers",   "text-50mbit"};
  char path[128];
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    snprintf(path, sizeof path, "tools/experiments/%s.ini", names[i]);
    if (!experiment_file_read(path, &file, error)) {
      fail_msg("%s", error);
    }
  }
}

/* -------------------------------------------------------------------- matrix */

static void every_combination_runs_once_in_each_repetition(void **state) {
  size_t count = 0, again = 0, kept = 0;
  (void)state;
  assert_true(parse(good));
  experiment_case *cases = experiment_matrix_make(&file, &count);
  experiment_case *same = experiment_matrix_make(&file, &again);
  assert_int_equal(count, 3 * 2 * 2 * 2 * 2 * 2 + 1);
  for (size_t i = 0; i < count; i++) {
    assert_string_equal(cases[i].name, same[i].name);
    kept += i > 0 && cases[i].policy == cases[i - 1].policy;
    for (size_t other = 0; other < i; other++) {
      assert_string_not_equal(cases[i].name, cases[other].name);
    }
    assert_true(i == 0 || cases[i].repetition >= cases[i - 1].repetition);
  }
  assert_true(kept < count * 2 / 3); /* policies take turns */
  file.seed++;
  free(same);
  same = experiment_matrix_make(&file, &again);
  size_t moved = 0;
  for (size_t i = 0; i < count; i++) {
    moved += strcmp(cases[i].name, same[i].name) != 0;
  }
  assert_true(moved > count / 2);
  free(cases);
  free(same);
}

static void a_command_has_what_the_case_says(void **state) {
  static const char text[] =
      "[run a]\nprogram = sh\noptions = -c 'echo {seed} \"{policy}\"' {rate}\n"
      "where = pose\npolicies = net=int8\nseeds = 9\nworlds = 2x2\n";
  char shown[2048];
  experiment_command command;
  size_t count = 0;
  (void)state;
  assert_true(parse(text));
  experiment_case *cases = experiment_matrix_make(&file, &count);
  assert_true(experiment_command_make(&cases[0], "/tmp/x", "name", &command, error));
  assert_string_equal(command.words[command.count - 2], "echo 9 \"net=int8\"");
  assert_string_equal(command.words[command.count - 1], "");
  experiment_command_show(&command, shown, sizeof shown);
  assert_non_null(strstr(shown, "-np 4 "));
  snprintf(file.workloads[0].program, EXPERIMENT_TEXT_MAX, "no_such_program");
  assert_false(experiment_command_make(&cases[0], "/tmp/x", "name", &command, error));
  assert_non_null(strstr(error, "no_such_program"));
  free(cases);
}

static void faster_links_take_less_time(void **state) {
  size_t count = 0;
  double slow = 0.0, fast = 0.0;
  (void)state;
  assert_true(parse(good));
  experiment_case *cases = experiment_matrix_make(&file, &count);
  for (size_t i = 0; i < count; i++) {
    if (cases[i].of == &file.workloads[0] && cases[i].policy[0] == '\0') {
      *(strcmp(cases[i].rate, "1gbit") == 0 ? &fast : &slow) += experiment_estimate(&cases[i], 1e6);
    }
    assert_true(experiment_estimate(&cases[i], 1.0) <= 1.0);
  }
  assert_true(fast > 0.0 && slow > fast);
  free(cases);
}

/* ------------------------------------------------------------------- results */

#define CONFIG                                                                                     \
  "{\"event\":\"config\",\"ranks\":2,\"batch\":10,\"origin\":{\"transport\":\"ucx\"}}\n"
#define EPOCH(number, steps, accuracy, net)                                                        \
  "{\"event\":\"epoch\",\"epoch\":" #number ",\"steps\":" #steps ",\"accuracy\":" #accuracy        \
  ",\"samples_per_s\":100,\"sent_bytes\":{\"net\":" #net "},\"encode_s\":0.2,\"decode_s\":0.4,"    \
  "\"wire_s\":3,\"wait_s\":2}\n"

static void a_training_is_read(void **state) {
  static experiment_result made;
  char text[] = "noise\n" CONFIG EPOCH(1, 10, 0.5, 1000) "{broken\n" EPOCH(2, 20, 0.7, 1000);
  (void)state;
  memset(&made, 0, sizeof made);
  assert_true(experiment_result_parse(text, &made));
  assert_int_equal(made.epoch_count, 2);
  assert_true(fabs(made.epochs[1].seconds - 4.0) < 1e-9); /* 20 steps of 2 x 10 images */
  assert_true(fabs(made.epochs[1].sent_bytes - 2000.0) < 1e-9);
  assert_true(fabs(made.step_s - 0.2) < 1e-9 && fabs(made.wait_s - 0.1) < 1e-9);
  assert_true(fabs(made.wire_s - 0.15) < 1e-9); /* 3 s an epoch of two ranks, over 10 steps */
  assert_true(fabs(made.compute_s - (0.2 - 0.1 - 0.01 - 0.02)) < 1e-9);
  assert_true(fabs(experiment_result_time_to(&made, 0.6) - 3.0) < 1e-9);
  assert_true(fabs(experiment_result_time_to(&made, 0.8)) < 1e-9);
  assert_string_equal(made.transport, "ucx");
}

static void collectives_are_read_as_document_or_lines(void **state) {
  static experiment_result made;
  char document[] = "{\"results\": [\n {\"size\": 8, \"median_s\": 0.5, \"busbw_gb_s\": 2},\n"
                    " {\"size\": 16, \"median_s\": 1}]}\n";
  char lines[] = "hello\n{\"size\": 8, \"median_s\": 0.5}\n{\"size\": 8}\n";
  (void)state;
  memset(&made, 0, sizeof made);
  assert_true(experiment_result_parse(document, &made));
  assert_int_equal(made.row_count, 2);
  memset(&made, 0, sizeof made);
  assert_true(experiment_result_parse(lines, &made));
  assert_int_equal(made.row_count, 1);
}

static void nonsense_is_no_result(void **state) {
  static experiment_result made;
  static const char *const texts[] = {
      "",    "hello\n", "[]", "{}", "{\"median_s\": -1}", "{\"median_s\": 1e999}", "{\"event\": 3}",
      "null"};
  char text[64];
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    memset(&made, 0, sizeof made);
    snprintf(text, sizeof text, "%s", texts[i]);
    assert_false(experiment_result_parse(text, &made));
  }
}

/* -------------------------------------------------------------------- answer */

static experiment of;
static experiment_options options = {.file = "test.ini", .out = "/tmp/none"};

/* Results in which a policy is `factor` times as fast as exact at 50mbit, and the half at 1gbit. */
static void make_results(double factor) {
  make_experiment("[experiment]\naccuracy = 50%\n[run t]\nprogram = train\nworlds = 4x1\n"
                  "rates = 1gbit, 50mbit\npolicies = exact | net=int8\nseeds = 1, 2\n",
                  &options, &of);
  for (size_t i = 0; i < of.count; i++) {
    bool lossy = of.cases[i].policy[0] != '\0', slow = strcmp(of.cases[i].rate, "50mbit") == 0;
    double speedup = !lossy ? 1.0 : slow ? factor : factor / 4.0;
    experiment_result *made = &of.results[i];
    made->epoch_count = 1;
    made->steps = 10.0;
    made->epochs[0] = (experiment_epoch){(slow ? 20.0 : 1.0) / speedup,
                                         0.8 - 0.01 * (double)of.cases[i].seed, 1.0, 1e6};
    snprintf(made->machine, sizeof made->machine, "a machine");
  }
}

static experiment_answer answer_of(double factor) {
  experiment_groups groups;
  experiment_answer answer;
  make_results(factor);
  assert_true(experiment_groups_make(&of, &groups));
  experiment_answer_make(&groups, &answer);
  experiment_groups_free(&groups);
  return answer;
}

static void the_answer_says_what_pays_and_from_where_on_nothing(void **state) {
  (void)state;
  experiment_answer answer = answer_of(2.0);
  assert_non_null(strstr(answer.sentences[0], "At 50mbit"));
  assert_non_null(strstr(answer.sentences[0], "net=int8 reaches 50 % in 0.5 of the time"));
  assert_non_null(strstr(answer.sentences[1], "From 1gbit on nothing pays"));
  assert_non_null(strstr(answer.sentences[1], "net=int8 breaks even near 224 Mbit/s"));
  assert_non_null(strstr(answer.sentences[2], "After 1 epoch exact has 78.50 %"));
  assert_non_null(strstr(answer.sentences[2], "(78.00 to 79.00 over 2 runs)"));
  experiment_end(&of);
}

/* Its steps are faster, but it needs more of them. */
static void the_answer_names_who_is_first_at_the_accuracy(void **state) {
  experiment_groups groups;
  experiment_answer answer;
  (void)state;
  make_experiment("[experiment]\naccuracy = 50%\n[run t]\nprogram = train\nworlds = 4x1\n"
                  "rates = 50mbit\npolicies = exact | net=int8 | net=sign | net=int2\n",
                  &options, &of);
  for (size_t i = 0; i < of.count; i++) {
    static const double epoch_s[] = {20.0, 5.0, 4.0, 3.0}, accuracies[] = {0.6, 0.6, 0.45, 0.4};
    size_t policy = 0;
    while (of.cases[i].policy != of.file.workloads[0].policies.words[policy]) {
      policy++;
    }
    experiment_result *made = &of.results[i];
    made->epoch_count = 2;
    made->steps = 20.0;
    made->epochs[0] = (experiment_epoch){epoch_s[policy], accuracies[policy], 1.0, 1e6};
    made->epochs[1] = (experiment_epoch){2.0 * epoch_s[policy],
                                         policy == 3 ? 0.4 : accuracies[policy] + 0.1, 1.0, 2e6};
  }
  assert_true(experiment_groups_make(&of, &groups));
  experiment_answer_make(&groups, &answer);
  assert_non_null(
      strstr(answer.sentences[0], "net=int8 reaches 50 % in 0.25 of the time of exact"));
  experiment_groups_free(&groups);
  experiment_end(&of);
}

static void the_answer_says_that_nothing_pays(void **state) {
  (void)state;
  experiment_answer answer = answer_of(0.5);
  assert_non_null(strstr(answer.sentences[0], "it does not pay"));
  assert_non_null(strstr(answer.sentences[1], "Nothing pays at any rate"));
  experiment_end(&of);
}

/* Speeds against exact of each policy, at 50 Mbit/s, 200 Mbit/s and 1 Gbit/s. */
static void make_speeds(const double speeds[3][3]) {
  static const char *const names[] = {"50mbit", "200mbit", "1gbit"};
  make_experiment("[run t]\nprogram = train\nworlds = 4x1\nrates = 50mbit, 200mbit, 1gbit\n"
                  "policies = exact | net=bf16 | net=int8 | net=topk:0.01+ef\n",
                  &options, &of);
  for (size_t i = 0; i < of.count; i++) {
    size_t policy = 0, rate = 0;
    while (of.cases[i].policy != of.file.workloads[0].policies.words[policy]) {
      policy++;
    }
    while (strcmp(of.cases[i].rate, names[rate]) != 0) {
      rate++;
    }
    experiment_result *made = &of.results[i];
    made->epoch_count = 1;
    made->steps = 10.0;
    made->epochs[0] = (experiment_epoch){
        8.0 / (1.0 + (double)rate) / (policy > 0 ? speeds[policy - 1][rate] : 1.0), 0.8, 1.0, 1e6};
  }
}

/* What the second sentence says. */
static void expect_limit(const double speeds[3][3], const char *sentence) {
  experiment_groups groups;
  experiment_answer answer;
  make_speeds(speeds);
  assert_true(experiment_groups_make(&of, &groups));
  experiment_answer_make(&groups, &answer);
  assert_string_equal(answer.sentences[1], sentence);
  experiment_groups_free(&groups);
  experiment_end(&of);
}

static void the_answer_says_by_itself_what_does_not_pay(void **state) {
  (void)state;
  expect_limit((const double[3][3]){{2, 1.5, 1.1}, {3, 2, 1.5}, {9, 4, 2}},
               "Up to the fastest link measured, 1gbit, compression pays with every policy.");
  expect_limit((const double[3][3]){{0.5, 0.8, 0.9}, {3, 2, 1.5}, {9, 4, 2}},
               "Up to the fastest link measured, 1gbit, compression pays, but not with net=bf16 "
               "(0.9 of the speed of exact).");
  expect_limit((const double[3][3]){{2, 1.5, 0.5}, {3, 2, 1.5}, {9, 4, 0.25}},
               "Up to the fastest link measured, 1gbit, compression pays, but not with net=bf16 "
               "(0.5 of the speed of exact), net=topk:0.01+ef (0.25 of the speed of exact); "
               "net=bf16 breaks even near 362 Mbit/s, net=topk:0.01+ef breaks even near 447 "
               "Mbit/s.");
  expect_limit((const double[3][3]){{2, 0.5, 0.5}, {3, 2, 0.8}, {9, 0.9, 0.25}},
               "From 1gbit on nothing pays; net=bf16 breaks even near 100 Mbit/s, net=int8 breaks "
               "even near 676 Mbit/s, net=topk:0.01+ef breaks even near 188 Mbit/s.");
  expect_limit((const double[3][3]){{2, 0.9, 0.5}, {3, 0.5, 0.8}, {9, 0.9, 0.25}},
               "From 200mbit on nothing pays; net=bf16 breaks even near 167 Mbit/s, net=int8 "
               "breaks even near 117 Mbit/s, net=topk:0.01+ef breaks even near 188 Mbit/s.");
  expect_limit((const double[3][3]){{0.9, 0.9, 0.5}, {0.5, 0.5, 0.8}, {0.9, 0.9, 0.25}},
               "Nothing pays at any rate that was measured.");
}

static void what_loses_is_red_and_where_it_begins_is_marked(void **state) {
  static experiment_pictures pictures;
  experiment_groups groups;
  size_t marked = 0;
  (void)state;
  make_speeds((const double[3][3]){{2, 1.5, 0.5}, {3, 2, 1.5}, {9, 4, 2}});
  assert_true(experiment_groups_make(&of, &groups));
  assert_true(experiment_pictures_make(&groups, &pictures));
  for (size_t i = 0; i < pictures.count; i++) {
    const experiment_picture *it = &pictures.list[i];
    if (strstr(it->name, "speedup")) {
      marked++;
      assert_non_null(strstr(it->script, "'break-even near'"));
      assert_non_null(strstr(it->script, "'net=bf16: 362 Mbit/s'"));
      assert_non_null(strstr(it->script, "set arrow from 362"));
      assert_null(strstr(it->script, "net=int8: "));
      assert_non_null(strstr(it->table, "\n!1gbit\tnet=bf16\t"));
      assert_null(strstr(it->table, "\n!1gbit\tnet=int8"));
      assert_null(strstr(it->table, "\n!50mbit"));
    }
  }
  assert_int_equal(marked, 1);
  experiment_pictures_free(&pictures);
  experiment_groups_free(&groups);
  experiment_end(&of);
}

static void failed_runs_are_left_out_of_means(void **state) {
  experiment_groups groups;
  (void)state;
  make_results(2.0);
  of.results[0].state = EXPERIMENT_FAILED;
  of.results[0].epochs[0].seconds = 1e9;
  assert_true(experiment_groups_make(&of, &groups));
  size_t runs = 0, failed = 0;
  for (size_t i = 0; i < groups.count; i++) {
    runs += groups.groups[i].runs;
    failed += groups.groups[i].failed;
    assert_true(groups.groups[i].epoch_s < 100.0);
  }
  assert_int_equal(runs, 7);
  assert_int_equal(failed, 1);
  experiment_groups_free(&groups);
  experiment_end(&of);
}

static char *written(void (*write)(const experiment_report *, FILE *),
                     const experiment_report *report) {
  char *text = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&text, &size);
  assert_non_null(memory);
  write(report, memory);
  fclose(memory);
  return text;
}

static void reports_show_losses_and_failures_and_mixed_machines(void **state) {
  static experiment_report report;
  (void)state;
  make_results(2.0);
  of.results[0].state = EXPERIMENT_FAILED;
  snprintf(of.results[0].why, sizeof of.results[0].why, "it said <b> & went");
  snprintf(of.results[1].machine, sizeof of.results[1].machine, "another");
  memset(&report, 0, sizeof report);
  report.of = &of;
  report.failed = 1;
  assert_true(experiment_groups_make(&of, &report.groups));
  experiment_answer_make(&report.groups, &report.answer);
  assert_true(experiment_pictures_make(&report.groups, &report.pictures));
  assert_true(report.pictures.count >= 4);
  char *html = written(experiment_report_html, &report);
  assert_non_null(strstr(html, "it said &lt;b&gt; &amp; went"));
  assert_non_null(strstr(html, "Machines are mixed"));
  assert_non_null(strstr(html, "Where compression lost"));
  assert_non_null(strstr(html, "<tr class=\"bad\"><td>1gbit</td>"));
  assert_null(strstr(html, "<script"));
  char *markdown = written(experiment_report_markdown, &report);
  assert_non_null(strstr(markdown, "**Machines are mixed**"));
  assert_non_null(strstr(markdown, "**lost**"));
  char *csv = written(experiment_report_csv, &report);
  size_t lines = 0;
  for (const char *c = csv; *c != '\0'; c++) {
    lines += *c == '\n';
  }
  assert_int_equal(lines, 1 + of.count);
  free(html);
  free(markdown);
  free(csv);
  experiment_pictures_free(&report.pictures);
  experiment_groups_free(&report.groups);
  experiment_end(&of);
}

/* ------------------------------------------------------------------- process */

static experiment_outcome run(char *const *command, double limit_s) {
  experiment_process process = {command, "/dev/null", "/dev/null", NULL, limit_s};
  return experiment_process_run(&process, NULL, NULL);
}

static void a_process_ends_in_one_of_its_ways(void **state) {
  char *exits[] = {"sh", "-c", "exit 3", NULL}, *dies[] = {"sh", "-c", "kill -SEGV $$", NULL};
  char *hangs[] = {"sleep", "100", NULL}, *none[] = {"/there/is/none", NULL};
  (void)state;
  experiment_outcome outcome = run(exits, 60.0);
  assert_int_equal(outcome.end, EXPERIMENT_EXITED);
  assert_int_equal(outcome.code, 3);
  assert_int_equal(run(dies, 60.0).end, EXPERIMENT_KILLED);
  assert_int_equal(run(none, 60.0).end, EXPERIMENT_NO_START);
  outcome = run(hangs, 0.2);
  assert_int_equal(outcome.end, EXPERIMENT_LATE);
  assert_true(outcome.seconds < 50.0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_file_is_read),
    cmocka_unit_test(a_mistake_is_told_with_its_line),
    cmocka_unit_test(a_file_that_is_not_there_is_named),
    cmocka_unit_test(ready_made_files_are_right),
    cmocka_unit_test(every_combination_runs_once_in_each_repetition),
    cmocka_unit_test(a_command_has_what_the_case_says),
    cmocka_unit_test(faster_links_take_less_time),
    cmocka_unit_test(a_training_is_read),
    cmocka_unit_test(collectives_are_read_as_document_or_lines),
    cmocka_unit_test(nonsense_is_no_result),
    cmocka_unit_test(the_answer_says_what_pays_and_from_where_on_nothing),
    cmocka_unit_test(the_answer_names_who_is_first_at_the_accuracy),
    cmocka_unit_test(the_answer_says_that_nothing_pays),
    cmocka_unit_test(the_answer_says_by_itself_what_does_not_pay),
    cmocka_unit_test(what_loses_is_red_and_where_it_begins_is_marked),
    cmocka_unit_test(failed_runs_are_left_out_of_means),
    cmocka_unit_test(reports_show_losses_and_failures_and_mixed_machines),
    cmocka_unit_test(a_process_ends_in_one_of_its_ways),
};
RUN_TESTS(tests)

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Simulated times beside measured ones in the report of an experiment. */

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
#include "tests/support/temp_folder.h"
#include "tests/support/unit_tests.h"
#include "tools/experiment/experiment_folder.h"
#include "tools/experiment/experiment_report.h"
#include "tools/experiment/experiment_simulation.h"
#include "tools/simulation/simulate_workload.h"

#define LOG                                                                                        \
  "{\"event\":\"config\",\"ranks\":2,\"batch\":10,\"tensors\":[{\"count\":1000000,\"name\":\"w\"}" \
  ",{\"count\":3000000,\"name\":\"v\"}]}\n"
#define SHAPED_LOG                                                                                 \
  "{\"event\":\"config\",\"ranks\":2,\"batch\":10,\"tensors\":["                                   \
  "{\"count\":4000000,\"rows\":2000,\"columns\":2000,\"name\":\"w\"}]}\n"
#define OLD_LOG "{\"event\":\"config\",\"ranks\":2,\"batch\":10}\n"

static experiment of;
static experiment_options options = {.file = "test.ini"};
static experiment_groups groups;

/* Runs of a file, as if they were over, with steps of a tenth of a second. */
static void begin(const char *text, const char *log, const char *place) {
  char error[EXPERIMENT_ERROR_MAX], path[EXPERIMENT_PATH_MAX];
  snprintf(options.out, sizeof options.out, "%s", place);
  make_experiment(text, &options, &of);
  for (size_t i = 0; i < of.count; i++) {
    experiment_result *made = &of.results[i];
    snprintf(made->machine, sizeof made->machine, "2 x a processor");
    if (experiment_kind_of(of.cases[i].of) == EXPERIMENT_PERF) {
      made->rows[0] = (experiment_row){1 << 20, 0.1, 0.01, 1 << 20};
      made->rows[1] = (experiment_row){4 << 20, 0.4, 0.01, 4 << 20};
      made->row_count = 2;
    } else {
      made->steps = 10.0;
      made->step_s = 0.1;
      made->compute_s = 0.02;
      made->epoch_count = 1;
      made->epochs[0] = (experiment_epoch){1.0, 0.8, 1.0, 1e6};
    }
    experiment_case_folder(&of, i, path);
    assert_true(experiment_folder_begin(path, error));
    assert_true(experiment_folder_write(path, "results.jsonl", log, strlen(log), error));
  }
  snprintf(path, sizeof path, "%.900s/simulated", place);
  assert_true(experiment_groups_make(&of, &groups));
  experiment_groups_simulate(&groups, path);
}

static void end(void) {
  experiment_groups_free(&groups);
  experiment_end(&of);
}

static const experiment_group *find(const char *policy, const char *rate) {
  for (size_t i = 0; i < groups.count; i++) {
    if (strcmp(groups.groups[i].policy, policy) == 0 && strcmp(groups.groups[i].rate, rate) == 0) {
      return &groups.groups[i];
    }
  }
  fail_msg("there is no group %s at %s", policy, rate);
  return NULL;
}

static void a_log_becomes_a_workload(void **state) {
  char log[] = "noise\n" LOG OLD_LOG, old[] = OLD_LOG "{\"tensors\":3}\n", why[SIMULATE_WHY_MAX];
  simulate_workload workload;
  (void)state;
  char *text = experiment_simulation_workload(log, 0.3);
  assert_non_null(text);
  assert_true(simulate_workload_parse(text, strlen(text), &workload, why));
  assert_int_equal(workload.count, 2);
  assert_string_equal(workload.tensors[0].name, "w");
  assert_int_equal(workload.tensors[1].count, 3000000);
  assert_true(fabs(simulate_seconds(workload.forward) - 0.1) < 1e-6);
  assert_true(fabs(simulate_seconds(workload.tensors[1].backward) - 0.15) < 1e-6);
  simulate_workload_free(&workload);
  free(text);
  assert_null(experiment_simulation_workload(old, 0.3));
}

#define TRAININGS                                                                                  \
  "[run t]\nprogram = train\nworlds = 2x1\nrates = 50mbit, 1gbit\npolicies = exact | net=int8\n"

static void trainings_over_emulated_links_are_simulated(void **state) {
  begin(TRAININGS, LOG, ((folder *)*state)->path);
  const experiment_group *exact = find("", "50mbit"), *int8 = find("net=int8", "50mbit");
  double wire_s = 4e6 * 32 / 50e6; /* of two hosts each sends all, once */
  assert_true(exact->simulated.step_s > wire_s && exact->simulated.step_s < 1.2 * wire_s + 0.05);
  assert_true(int8->simulated.speedup > 3.0 && int8->simulated.speedup < 4.5);
  assert_true(find("", "1gbit")->simulated.step_s < exact->simulated.step_s / 5.0);
  assert_true(fabs(experiment_simulated_share(exact) - exact->simulated.step_s / 0.1) < 1e-9);
  assert_non_null(strstr(int8->simulated.command, "simulate --nodes=2 --ranks=1 --link=50mbit "));
  assert_non_null(strstr(int8->simulated.command, "--policy=net=int8"));
  assert_non_null(strstr(int8->simulated.command, "--steps=10 ")); /* as many as were trained */
  end();
}

static void low_rank_has_the_shapes_that_logs_name(void **state) {
  begin(
      "[run t]\nprogram = train\nworlds = 2x1\nrates = 50mbit\npolicies = exact | net=lowrank:4\n",
      SHAPED_LOG, ((folder *)*state)->path);
  assert_true(find("net=lowrank:4", "50mbit")->simulated.speedup > 10.0);
  end();
}

/* Two of ten steps, and one that refreshes the variance after 1, 2, ... others. */
static void exact_steps_of_a_policy_count_as_such(void **state) {
  begin("[run t]\nprogram = train\nworlds = 2x1\nrates = 50mbit\n"
        "policies = exact | net=int8 | net=int8 warmup=2 | net=int8+ef adam=onebit,refresh=1 "
        "warmup=2\n",
        LOG, ((folder *)*state)->path);
  double exact_s = find("", "50mbit")->simulated.step_s;
  double int8_s = find("net=int8", "50mbit")->simulated.step_s;
  double warm_s = find("net=int8 warmup=2", "50mbit")->simulated.step_s;
  const experiment_group *adam = find("net=int8+ef adam=onebit,refresh=1 warmup=2", "50mbit");
  assert_true(fabs(warm_s - (0.2 * exact_s + 0.8 * int8_s)) < 1e-6 * warm_s);
  assert_true(fabs(adam->simulated.exact_share - 0.4) < 1e-9); /* steps 0, 1, 3 and 6 */
  assert_true(fabs(adam->simulated.step_s - (0.4 * exact_s + 0.6 * int8_s)) < 0.02 * warm_s);
  end();
}

/* Four ranks that compute for 20 ms of the clock on two processors have worked for 10 ms each. */
static void computation_is_that_of_processors_which_ranks_share(void **state) {
  static const char *const worlds[] = {"1x1", "2x1", "4x1"};
  static const double compute_s[] = {0.02, 0.02, 0.01};
  for (size_t i = 0; i < 3; i++) {
    char text[256], path[EXPERIMENT_PATH_MAX], why[SIMULATE_WHY_MAX];
    simulate_workload workload;
    snprintf(text, sizeof text, "[run t]\nprogram = train\nworlds = %s\nrates = 1gbit\n",
             worlds[i]);
    begin(text, LOG, ((folder *)*state)->path);
    snprintf(path, sizeof path, "%s/simulated/workload0.json", ((folder *)*state)->path);
    assert_true(simulate_workload_read(path, &workload, why));
    assert_true(fabs(simulate_seconds(simulate_workload_compute(&workload)) - compute_s[i]) < 1e-5);
    simulate_workload_free(&workload);
    end();
  }
}

static void collectives_over_emulated_links_are_simulated(void **state) {
  begin("[run c]\nprogram = allreduce_perf\noptions = -b 1M -e 4M\nworlds = 2x1\nrates = 50mbit\n"
        "policies = exact | net=int8 | net=topk:0.01+ef\n",
        OLD_LOG, ((folder *)*state)->path);
  const experiment_group *exact = find("", "50mbit");
  assert_true(exact->simulated.row_s[1] > 0.9 * 8.0 * (4 << 20) / 50e6);
  assert_true(exact->simulated.row_s[1] > 3.0 * exact->simulated.row_s[0]);
  assert_true(find("net=int8", "50mbit")->simulated.speedup > 3.0);
  assert_true(find("net=topk:0.01+ef", "50mbit")->simulated.speedup > 20.0); /* as tensors */
  assert_non_null(strstr(exact->simulated.command, " --steps=6 "));
  end();
}

static void what_is_not_known_is_not_simulated_and_says_why(void **state) {
  static const char *const posed = "[run t]\nprogram = train\nwhere = pose\n";
  static const char *const options_matter =
      "[run c]\nprogram = allreduce_perf\noptions = -b 1M -d int64\nrates = 50mbit\n";
  const char *path = ((folder *)*state)->path;
  begin(posed, LOG, path);
  assert_false(groups.groups[0].simulated.tried);
  end();
  begin(TRAININGS, OLD_LOG, path);
  assert_true(groups.groups[0].simulated.step_s == 0.0);
  assert_non_null(strstr(groups.groups[0].simulated.why, "does not name its tensors"));
  end();
  begin(options_matter, OLD_LOG, path);
  assert_non_null(strstr(groups.groups[0].simulated.why, "plain calls"));
  end();
  begin(TRAININGS, LOG, path);
  snprintf(of.results[0].machine, sizeof of.results[0].machine, "4 x another");
  memset(&groups.groups[0].simulated, 0, sizeof groups.groups[0].simulated);
  experiment_groups_simulate(&groups, path);
  assert_non_null(strstr(groups.groups[0].simulated.why, "one machine"));
  end();
}

static void reports_show_simulated_beside_measured(void **state) {
  static experiment_pictures pictures;
  begin("[experiment]\naccuracy = 50%\n" TRAININGS
        "[run c]\nprogram = allreduce_perf\nworlds = 2x1, 4x1\nrates = 50mbit\n"
        "policies = exact | net=int8\n",
        LOG, ((folder *)*state)->path);
  assert_true(experiment_pictures_make(&groups, &pictures));
  size_t marked = 0, listed = 0, curves = 0;
  for (size_t i = 0; i < pictures.count; i++) {
    marked += strstr(pictures.list[i].script, "pt 6") != NULL;
    listed += strstr(pictures.list[i].table, "simulated") != NULL;
    curves += strstr(pictures.list[i].script, "using 1:3 with points pt 6") != NULL;
  }
  /* accuracy against bytes is the one that has no time in it */
  assert_true(pictures.count >= 7);
  assert_int_equal(marked, pictures.count - 1);
  assert_true(curves >= 5); /* time, speed-up, two of bus bandwidth, scaling */
  assert_int_equal(listed, pictures.count - 1);
  const char *last = pictures.list[pictures.count - 1].table;
  assert_non_null(strstr(last, "t: 2 hosts x 1\t50mbit\tnet=int8\tstep\t100\t"));
  assert_non_null(strstr(last, "\tsimulate --nodes=2 "));
  experiment_pictures_free(&pictures);
  end();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_log_becomes_a_workload),
    IN_FOLDER(trainings_over_emulated_links_are_simulated),
    IN_FOLDER(low_rank_has_the_shapes_that_logs_name),
    IN_FOLDER(exact_steps_of_a_policy_count_as_such),
    IN_FOLDER(computation_is_that_of_processors_which_ranks_share),
    IN_FOLDER(collectives_over_emulated_links_are_simulated),
    IN_FOLDER(what_is_not_known_is_not_simulated_and_says_why),
    IN_FOLDER(reports_show_simulated_beside_measured),
};
RUN_TESTS(tests)

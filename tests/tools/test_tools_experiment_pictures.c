/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Pictures of experiments, drawn by gnuplot: their labels do not collide. */

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
#include "tests/support/svg_labels.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unit_tests.h"
#include "tools/experiment/experiment_picture.h"

static experiment of;
static experiment_options options = {.file = "test.ini", .out = "/nowhere"};

/* Results of all runs of a file: a policy needs the fewer bytes the later it stands in its list,
 * and the more processor time. */
static void fill(const char *text) {
  make_experiment(text, &options, &of);
  for (size_t i = 0; i < of.count; i++) {
    const experiment_case *it = &of.cases[i];
    experiment_result *made = &of.results[i];
    double place = 0.0, bits = experiment_rate_bits(it->rate);
    while (it->policy != it->of->policies.words[(size_t)place]) {
      place += 1.0;
    }
    made->step_s = 5e6 / (1.0 + 2.0 * place) / bits + 0.004 + 0.001 * place;
    made->wait_s = made->wire_s = 5e6 / (1.0 + 2.0 * place) / bits;
    made->compute_s = 0.003 + 0.0001 * place;
    made->encode_s = made->decode_s = made->step_s - made->wait_s - made->compute_s;
    if (experiment_kind_of(it->of) == EXPERIMENT_PERF) {
      for (double size = 262144.0; size < 3e7; size *= 4.0) {
        double median_s = size * made->step_s;
        made->rows[made->row_count++] =
            (experiment_row){size, median_s, size / median_s / 1e9, size};
      }
      continue;
    }
    made->steps = 1000.0;
    made->epoch_count = 2;
    made->epochs[0] = (experiment_epoch){500.0 * made->step_s, 0.7 - 0.002 * place, 1.0,
                                         5e8 / (1.0 + 4.0 * place)};
    made->epochs[1] = (experiment_epoch){1000.0 * made->step_s, 0.8 - 0.001 * place, 1.0,
                                         1e9 / (1.0 + 4.0 * place)};
  }
}

/* Every group as if it had been simulated. */
static void simulate(experiment_groups *groups) {
  for (size_t i = 0; i < groups->count; i++) {
    experiment_group *it = &groups->groups[i];
    it->simulated.tried = true;
    it->simulated.step_s = 0.9 * it->step_s;
    it->simulated.speedup = 1.1 * it->speedup;
    for (size_t r = 0; r < it->row_count; r++) {
      it->simulated.row_s[r] = 1.1 * it->rows[r].median_s;
    }
  }
}

static bool gnuplot_is_there(void) {
  return system("gnuplot --version >/dev/null 2>&1") == 0;
}

static void expect_apart(const experiment_picture *picture, const char *place) {
  static svg_labels labels;
  char what[512] = "";
  char *svg = experiment_picture_draw(picture, place);
  assert_non_null(svg);
  assert_true(svg_labels_read(svg, &labels));
  assert_true(labels.count >= 4);
  if (svg_labels_collide(&labels, what, sizeof what) > 0) {
    fail_msg("%s (%s): %s", picture->name, picture->title, what);
  }
  free(svg);
}

/* All pictures of a file, with and without simulated marks. Returns how many there are. */
static size_t expect_all_apart(const char *text, const char *place) {
  static experiment_pictures pictures;
  experiment_groups groups;
  size_t drawn = 0;
  fill(text);
  assert_true(experiment_groups_make(&of, &groups));
  for (int i = 0; i < 2; i++) {
    assert_true(experiment_pictures_make(&groups, &pictures));
    for (size_t p = 0; p < pictures.count; p++, drawn++) {
      expect_apart(&pictures.list[p], place);
    }
    experiment_pictures_free(&pictures);
    simulate(&groups);
  }
  experiment_groups_free(&groups);
  experiment_end(&of);
  return drawn;
}

#define POLICIES                                                                                   \
  "policies = exact | net=bf16 | net=bf16+zstd | net=fp8e4m3 | net=int8 | net=int4+ef | "          \
  "net=topk:0.1,values=int8+ef warmup=50 | net=topk:0.001+ef\n"

static void labels_of_trainings_do_not_collide(void **state) {
  if (!gnuplot_is_there()) {
    skip();
  }
  assert_true(expect_all_apart("[experiment]\naccuracy = 75%\n[run links]\nprogram = train\n"
                               "models = mlp\nworlds = 2x1, 4x1, 8x1\nrates = 25mbit, 50mbit, "
                               "100mbit, 200mbit, 500mbit, 1gbit, 2gbit, 10gbit\n" POLICIES,
                               ((folder *)*state)->path) >= 20);
}

static void labels_of_rates_that_are_close_do_not_collide(void **state) {
  if (!gnuplot_is_there()) {
    skip();
  }
  expect_all_apart("[run links]\nprogram = train\nrates = 1gbit, 100mbit, 105mbit, 110mbit, "
                   "120mbit, 50mbit\n" POLICIES,
                   ((folder *)*state)->path);
}

static void labels_of_one_rate_do_not_collide(void **state) {
  if (!gnuplot_is_there()) {
    skip();
  }
  assert_true(expect_all_apart("[run one]\nprogram = train\nrates = 100mbit\n" POLICIES,
                               ((folder *)*state)->path) >= 6);
}

static void labels_of_collectives_do_not_collide(void **state) {
  if (!gnuplot_is_there()) {
    skip();
  }
  assert_true(expect_all_apart("[run sums]\nprogram = allreduce_perf\nworlds = 2x1, 4x2, 8x1\n"
                               "rates = 200mbit, 1gbit\n" POLICIES,
                               ((folder *)*state)->path) >= 10);
}

static void colliding_labels_are_noticed(void **state) {
  static svg_labels labels;
  static const char *const scripts[] = {
      "set label 'one label' at graph 0.5,0.5\nset label 'another' at graph 0.52,0.51\nplot x\n",
      "set xtics ('1000mbit' 1, '1001mbit' 1.2)\nplot [0:10] x\n",
      "set label 'so long that it leaves the picture at its right side' at graph 0.9,0.5\nplot x\n",
      "set label 'up' rotate at graph 0.5,0.5\nset label 'across' at graph 0.49,0.52\nplot x\n"};
  if (!gnuplot_is_there()) {
    skip();
  }
  for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
    char what[512] = "", script[256];
    snprintf(script, sizeof script, "%s", scripts[i]);
    experiment_picture picture = {.name = "p01_bad", .script = script};
    char *svg = experiment_picture_draw(&picture, ((folder *)*state)->path);
    assert_non_null(svg);
    assert_true(svg_labels_read(svg, &labels));
    assert_true(svg_labels_collide(&labels, what, sizeof what) > 0);
    assert_true(what[0] != '\0');
    free(svg);
  }
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(labels_of_trainings_do_not_collide),
    IN_FOLDER(labels_of_rates_that_are_close_do_not_collide),
    IN_FOLDER(labels_of_one_rate_do_not_collide),
    IN_FOLDER(labels_of_collectives_do_not_collide),
    IN_FOLDER(colliding_labels_are_noticed),
};
RUN_TESTS(tests)

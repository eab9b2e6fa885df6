/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Vectors in a cache and in memory: what stays in a cache, and how long computations take by that.
 */

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

#include "tests/support/unit_tests.h"
#include "tests/tools/posed_world.h"
#include "tools/simulation/simulate_study.h"

/* ------------------------------------------------------------------ cache */

enum { ARRAYS = 12, ROUNDS = 60 };

/* Arrays of so many bytes together, worked through in turn: the share that is found at last, in a
 * cache of one byte. */
static double found_in_turn(double bytes) {
  simulate_cache cache = {.size = 1};
  simulate_array arrays[ARRAYS] = {{0}};
  double share = 0;
  for (int i = 0; i < ROUNDS * ARRAYS; i++) {
    share = simulate_cache_touch(&cache, &arrays[i % ARRAYS], bytes / ARRAYS, 1);
  }
  return share;
}

static void what_fits_is_found(void **state) {
  (void)state;
  assert_true(found_in_turn(0.5) > 0.999);
  assert_true(found_in_turn(20) < 0.001);
  double before = 1;
  for (double bytes = 0.5; bytes < 8; bytes += 0.5) {
    double share = found_in_turn(bytes);
    assert_true(share <= before && share >= 0);
    before = share;
  }
}

/* Lines that are replaced at random: a share s is left of what W (1 - s) bytes were brought after.
 */
static void what_does_not_fit_is_found_in_part(void **state) {
  (void)state;
  for (double bytes = 1.5; bytes < 6; bytes += 0.5) {
    double share = found_in_turn(bytes);
    assert_true(fabs(share - exp(-bytes * (1 - share))) < 0.01);
  }
}

static void parts_become_a_whole(void **state) {
  (void)state;
  simulate_cache cache = {.size = 100};
  simulate_array array = {0};
  for (int i = 0; i < 3; i++) {
    assert_true(simulate_cache_touch(&cache, &array, 10, 1.0 / 3) == 0);
  }
  assert_true(fabs(cache.brought - 10) < 1e-9);
  cache.brought += 90;
  assert_true(fabs(simulate_cache_touch(&cache, &array, 10, 0.5) - exp(-1)) < 1e-9);
}

static void without_a_cache_all_is_in_memory(void **state) {
  (void)state;
  simulate_cache none = {0};
  simulate_array array = {0};
  for (int i = 0; i < 3; i++) {
    assert_true(simulate_cache_touch(&none, &array, 10, 1) == 0);
  }
}

/* ------------------------------------------------------------- simulation */

/* int8 is at work ten times as fast in a cache; so are copies. */
static const char speeds_json[] = "{\"codecs\": [{\"codec\": \"int8\", \"speed\": ["
                                  "{\"operation\": \"encode\", \"size_bytes\": 64, \"gb_s\": "
                                  "{\"median\": 10}, \"memcpy_gb_s\": {\"median\": 10}},"
                                  "{\"operation\": \"decode\", \"size_bytes\": 64, \"gb_s\": "
                                  "{\"median\": 10}, \"memcpy_gb_s\": {\"median\": 10}},"
                                  "{\"operation\": \"add\", \"size_bytes\": 64, \"gb_s\": "
                                  "{\"median\": 10}, \"memcpy_gb_s\": {\"median\": 10}},"
                                  "{\"operation\": \"encode\", \"size_bytes\": 4096, \"gb_s\": "
                                  "{\"median\": 1}, \"memcpy_gb_s\": {\"median\": 1}},"
                                  "{\"operation\": \"decode\", \"size_bytes\": 4096, \"gb_s\": "
                                  "{\"median\": 1}, \"memcpy_gb_s\": {\"median\": 1}},"
                                  "{\"operation\": \"add\", \"size_bytes\": 4096, \"gb_s\": "
                                  "{\"median\": 1}, \"memcpy_gb_s\": {\"median\": 1}}]}]}";

static void write_speeds(char *path) {
  int handle = mkstemp(path);
  FILE *file = handle < 0 ? NULL : fdopen(handle, "w");
  assert_non_null(file);
  fputs(speeds_json, file);
  fclose(file);
}

/* A step of 4 nodes that sum 1 M floats on two processors, over a link that takes next to no time.
 */
static double step_with(const char *cache, const char *how) {
  static simulate_options options;
  simulate_study study;
  char path[] = "/tmp/simulate-speeds-XXXXXX", error[TOOL_ERROR_MAX] = "", why[SIMULATE_WHY_MAX];
  write_speeds(path);
  char *argv[] = {"simulate",
                  "--nodes",
                  "4",
                  "--ranks",
                  "1",
                  "--link",
                  "1000gbit",
                  "--latency",
                  "0",
                  "--message",
                  "0",
                  "--byte-ns",
                  "0",
                  "-p",
                  "net=int8 min=1",
                  "--parameters",
                  "1M",
                  "--tensor",
                  "1G",
                  "--steps",
                  "9",
                  "--speeds",
                  path,
                  "--cache",
                  (char *)cache,
                  "--processors",
                  "2",
                  "--one-machine",
                  (char *)how,
                  NULL};
  int argc = (int)(sizeof argv / sizeof *argv) - (how ? 1 : 2);
  assert_int_equal(simulate_options_parse(argc, argv, &options, error), TOOL_RUN);
  bool good = simulate_study_run(&options, &study, why);
  unlink(path);
  assert_true(good && study.cases[0].done);
  double step_s = study.cases[0].result.step_s;
  simulate_study_free(&study);
  return step_s;
}

static void computations_are_as_fast_as_their_place(void **state) {
  (void)state;
  double memory_s = step_with("0", NULL), cache_s = step_with("1G", NULL);
  assert_true(memory_s > 0.004 && fabs(memory_s / cache_s - 10) < 0.5);
  double before_s = cache_s;
  static const char *const sizes[] = {"64M", "16M", "8M", "2M", "256K"};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    double step_s = step_with(sizes[i], NULL);
    assert_true(step_s >= before_s * 0.999 && step_s <= memory_s * 1.001);
    before_s = step_s;
  }
  assert_true(before_s > 0.9 * memory_s);
}

/* Four ranks on two processors copy 4 MB each. */
static void a_fill_takes_the_time_of_copies(void **state) {
  (void)state;
  double copies_s = 4 * 4e6 / 1e9 / 2;
  assert_true(fabs(step_with("0", "--fill") - step_with("0", NULL) - copies_s) < 0.1 * copies_s);
  assert_true(step_with("1G", "--fill") - step_with("1G", NULL) < 0.15 * copies_s);
}

/* Each of four owners adds three of the four selections of its part to the first one, and what it
 * sends to its residual; then all of what was sent and is applied leaves residuals, and is read:
 * three vectors at the speed of an addition, where nothing else takes time. */
static void sums_by_top_k_take_their_additions(void **state) {
  (void)state;
  static const char text[] =
      "{\"codecs\": [{\"codec\": \"topk:0.01+ef\", \"speed\": ["
      "{\"operation\": \"encode\", \"size_bytes\": 64, \"gb_s\": {\"median\": 900000}, "
      "\"memcpy_gb_s\": {\"median\": 900000}},"
      "{\"operation\": \"decode\", \"size_bytes\": 64, \"gb_s\": {\"median\": 900000}},"
      "{\"operation\": \"add\", \"size_bytes\": 64, \"gb_s\": {\"median\": 1}}]}]}";
  posed it = {.speeds = simulate_speeds_built_in(SIMULATE_IN_MEMORY)};
  simulate_result result;
  lcomm_why error;
  simulate_settings settings = {.cards = 1, .steps = 1};
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    settings.links[i] = (simulate_link){.bytes_per_s = 1e14};
  }
  assert_true(simulate_speeds_parse(text, strlen(text), SIMULATE_IN_MEMORY, &it.speeds, it.why));
  assert_int_equal(lcomm_policy_parse("net=topk:0.01+ef", &it.policy, &error), LCOMM_OK);
  assert_int_equal(simulate_world_pose(4, 1, &it.topo, it.why), LCOMM_OK);
  assert_true(simulate_workload_formula(1000000, 1000000, 0, &it.workload));
  assert_true(make_world(&it, SIMULATE_SYMMETRY_OFF));
  assert_true(simulate_engine_run(&it.world, &it.workload, &settings, NULL, &result, it.why));
  double vector_s = 4e6 / 1e9;
  assert_true(fabs(result.step_s - 3 * vector_s) < 0.05 * vector_s);
  free_posed(&it);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_fits_is_found),
    cmocka_unit_test(what_does_not_fit_is_found_in_part),
    cmocka_unit_test(parts_become_a_whole),
    cmocka_unit_test(without_a_cache_all_is_in_memory),
    cmocka_unit_test(computations_are_as_fast_as_their_place),
    cmocka_unit_test(a_fill_takes_the_time_of_copies),
    cmocka_unit_test(sums_by_top_k_take_their_additions),
};
RUN_TESTS(tests)

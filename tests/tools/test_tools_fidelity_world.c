/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Workers of fidelity_bench: ranks of the library that all are in one process. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/unit_tests.h"
#include "tests/tools/fidelity_trained.h"
#include "tools/fidelity/fidelity_meeting.h"
#include "tools/fidelity/fidelity_world.h"
#include "trainer/train_random.h"

static const layer_shape image = {1, 28, 28};

/* ------------------------------------------------------------------ meeting */

static bool gather_numbers(void *context, int rank, const lcomm_bootstrap *boot) {
  atomic_int *right = context;
  bool good = boot->rank == rank && boot->world_size == 5;
  for (int round = 1; round <= 3; round++) { /* pieces of another size in each round */
    int mine[3] = {rank * round, rank, round}, all[5 * 3];
    good = good && boot->allgather(boot->context, mine, all, (size_t)round * sizeof(int)) == 0;
    for (int i = 0; good && i < 5; i++) {
      good = all[i * round] == i * round;
    }
  }
  atomic_fetch_add(right, good);
  return good;
}

static void ranks_gather_what_all_of_them_have(void **state) {
  (void)state;
  atomic_int right = 0;
  assert_true(fidelity_meeting_run(5, gather_numbers, &right));
  assert_int_equal(right, 5);
}

static bool leave_early(void *context, int rank, const lcomm_bootstrap *boot) {
  atomic_int *told = context;
  int mine = rank, all[4];
  if (rank == 2) {
    return false;
  }
  atomic_fetch_add(told, boot->allgather(boot->context, &mine, all, sizeof mine) != 0);
  return true;
}

static void nobody_waits_for_a_rank_that_has_left(void **state) {
  (void)state;
  atomic_int told = 0;
  assert_false(fidelity_meeting_run(4, leave_early, &told));
  assert_int_equal(told, 3);
}

/* -------------------------------------------------------------------- world */

static void fill(fidelity_world *world, double *sum, uint64_t seed) {
  memset(sum, 0, world->count * sizeof *sum);
  for (int worker = 0; worker < world->size; worker++) {
    random_stream random = random_begin(seed, (uint64_t)worker);
    for (size_t i = 0; i < world->count; i++) {
      world->workers[worker].values[i] = random_between(&random, -1.0f, 1.0f);
      sum[i] += (double)world->workers[worker].values[i];
    }
  }
}

/* Largest error of the applied sums of some steps, when what is kept back is added. */
static double error_of(fidelity_place place, const char *policy, int steps, uint64_t *bytes) {
  model net;
  fidelity_world world;
  failure why = {0};
  double worst = 0.0;
  assert_int_equal(model_create("mlp", image, 10, 1, &net), 0);
  if (fidelity_world_make(place, policy, &net, &world, &why)) {
    fail_msg("%s", why.text);
  }
  double *given = calloc(world.count, sizeof *given), *all = calloc(world.count, sizeof *all);
  float *kept = calloc(world.count, sizeof *kept);
  assert_true(given && all && kept);
  for (int step = 0; step < steps; step++) {
    fill(&world, given, (uint64_t)step);
    if (fidelity_world_step(&world, &why)) {
      fail_msg("%s", why.text);
    }
    for (size_t i = 0; i < world.count; i++) {
      all[i] += given[i] - world.size * (double)world.workers[0].values[i];
    }
  }
  for (int worker = 0; worker < world.size; worker++) {
    const fidelity_worker *at = &world.workers[worker];
    for (int i = 0; i < net.parameter_count; i++) {
      size_t first = net.parameters[i].offset;
      assert_int_equal(lcomm_tensor_residual(at->comm, at->gradients.tensors[i], kept), LCOMM_OK);
      for (size_t k = 0; k < net.parameters[i].count; k++) {
        all[first + k] -= (double)kept[k];
      }
    }
  }
  for (size_t i = 0; i < world.count; i++) {
    worst = fmax(worst, fabs(all[i]));
  }
  *bytes = fidelity_world_net_bytes(&world);
  free(given);
  free(all);
  free(kept);
  fidelity_world_free(&world);
  model_destroy(&net);
  return worst;
}

static void exact_sums_are_the_averages(void **state) {
  (void)state;
  uint64_t bytes = 0;
  assert_true(error_of((fidelity_place){2, 2}, "", 2, &bytes) < 1e-5);
  assert_true(error_of((fidelity_place){3, 1}, "", 2, &bytes) < 1e-5);
}

static void what_workers_do_not_send_is_in_their_residuals(void **state) {
  (void)state;
  uint64_t exact = 0, sparse = 0;
  const char *policy = "net=topk:0.01+ef";
  assert_true(error_of((fidelity_place){4, 1}, "", 3, &exact) < 1e-5);
  assert_true(error_of((fidelity_place){4, 1}, policy, 3, &sparse) < 1e-4);
  assert_true(error_of((fidelity_place){2, 2}, policy, 3, &sparse) < 1e-4);
  assert_true(sparse > 0 && 20 * sparse < exact);
}

static void sixteen_workers_are_served_by_one_thread(void **state) {
  (void)state;
  uint64_t bytes = 0;
  assert_true(error_of((fidelity_place){16, 1}, "net=topk:0.01+ef", 3, &bytes) < 1e-4);
  assert_true(error_of((fidelity_place){4, 4}, "net=topk:0.01+ef ramp=0.1@2", 4, &bytes) < 1e-4);
}

/* Of samples, or of what was measured. */
static void sums_at_the_end_of_steps_are_made(void **state) {
  (void)state;
  uint64_t bytes = 0;
  assert_true(error_of((fidelity_place){3, 1}, "net=topk:0.1+ef guard=2", 5, &bytes) < 1e-4);
  assert_true(error_of((fidelity_place){2, 2}, "net=auto:lossless min=1", 5, &bytes) < 1e-4);
}

static void a_policy_that_makes_no_sense_is_said(void **state) {
  (void)state;
  model net;
  fidelity_world world;
  failure why = {0};
  assert_int_equal(model_create("mlp", image, 10, 1, &net), 0);
  assert_int_equal(fidelity_world_make((fidelity_place){2, 1}, "net=int9", &net, &world, &why), -1);
  assert_non_null(strstr(why.text, "int9"));
  model_destroy(&net);
}

/* ----------------------------------------------------------------- training */

static fidelity_outcome train(const char *policy, fidelity_place world, uint64_t seed) {
  static const fidelity_training training = {
      .batch = 64, .images = 640, .epochs = 4, .rates = {0.05f, 0.002f}, .momentum = 0.9f};
  fidelity_cell cell = {.of = {.optimizer = OPTIMIZER_ADAM, .world = world, .training = &training},
                        .seed = seed};
  task data = shapes(640, 400);
  return outcome_by(policy, cell, &data);
}

static void equal_cells_have_equal_outcomes(void **state) {
  (void)state;
  fidelity_outcome one = train("net=topk:0.05+ef", (fidelity_place){4, 1}, 3);
  fidelity_outcome same = train("net=topk:0.05+ef", (fidelity_place){4, 1}, 3);
  fidelity_outcome other = train("net=topk:0.05+ef", (fidelity_place){4, 1}, 4);
  assert_memory_equal(one.curve, same.curve, sizeof one.curve);
  assert_true(one.accuracy == same.accuracy && one.bytes == same.bytes && one.steps == 40);
  assert_memory_not_equal(one.curve, other.curve, sizeof one.curve);
}

static void training_learns_and_sees_the_same_images_in_all_worlds(void **state) {
  (void)state;
  fidelity_outcome two = train("", (fidelity_place){2, 1}, 1);
  fidelity_outcome eight = train("", (fidelity_place){4, 2}, 1);
  assert_true(two.curve[two.curve_count - 1] < 0.9f * two.curve[0]);
  for (int part = 0; part < 5; part++) { /* later they drift apart by rounding */
    assert_true(fabsf(two.curve[part] - eight.curve[part]) < 1e-4f);
  }
}

/* One that reads text, in windows, and has a label at each byte. */
static void a_model_of_text_learns(void **state) {
  (void)state;
  static const fidelity_training training = {
      .batch = 16, .images = 160, .epochs = 4, .rates = {0.05f, 0.002f}, .momentum = 0.9f};
  static const fidelity_preset preset = {"bf16", "net=bf16"};
  fidelity_cell cell = {.of = {.model = "gpt-nano",
                               .optimizer = OPTIMIZER_ADAM,
                               .world = {2, 1},
                               .preset = &preset,
                               .training = &training},
                        .seed = 1};
  task data;
  failure why = {0};
  assert_int_equal(task_load(model_context("gpt-nano"), DATASET_BUILT_IN, 1, &data, &why), 0);
  task_limit(&data, 160);
  data.test_count = 32;
  fidelity_outcome made = outcome_of(&cell, &data);
  task_free(&data);
  assert_true(made.steps == 40 && made.bytes > 0);
  assert_true(made.curve[made.curve_count - 1] < 0.8f * made.curve[0]);
  assert_true(made.accuracy > 0.1 && made.accuracy < 1);
}

static void a_batch_that_cannot_be_spread_is_refused(void **state) {
  (void)state;
  static const fidelity_training training = {.batch = 64, .images = 640, .epochs = 1};
  static const fidelity_preset preset = {"fp32", ""};
  fidelity_cell cell = {
      .of = {.model = "mlp", .world = {3, 1}, .preset = &preset, .training = &training}, .seed = 1};
  task data = shapes(640, 400);
  fidelity_outcome made;
  failure why = {0};
  assert_int_equal(fidelity_train(&cell, &data, &made, &why), -1);
  assert_non_null(strstr(why.text, "3 workers"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranks_gather_what_all_of_them_have),
    cmocka_unit_test(nobody_waits_for_a_rank_that_has_left),
    cmocka_unit_test(exact_sums_are_the_averages),
    cmocka_unit_test(what_workers_do_not_send_is_in_their_residuals),
    cmocka_unit_test(sixteen_workers_are_served_by_one_thread),
    cmocka_unit_test(sums_at_the_end_of_steps_are_made),
    cmocka_unit_test(a_policy_that_makes_no_sense_is_said),
    cmocka_unit_test(equal_cells_have_equal_outcomes),
    cmocka_unit_test(training_learns_and_sees_the_same_images_in_all_worlds),
    cmocka_unit_test(a_model_of_text_learns),
    cmocka_unit_test(a_batch_that_cannot_be_spread_is_refused),
};
RUN_TESTS(tests)

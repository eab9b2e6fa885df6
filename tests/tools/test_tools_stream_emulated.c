/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The cases of stream_bench on emulated devices, with shorter vectors: what they sum is right, and
 * what they take they give back. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/support/emulated/emulated_device.h"
#include "tests/support/forked.h"
#include "tests/support/forked_comm.h"
#include "tests/support/unit_tests.h"
#include "tools/stream/stream_case.h"

enum { SAMPLES = 3, COUNT = 5000 };

static const lcomm_device_table *device;

/* Instead of a product of matrices. */
static int put_little(void *state, void *stream) {
  return device->set(state, 1, 64, stream);
}

static void free_nothing(void *state) {
  (void)state;
}

static void make(forked *self, stream_world *world, void **memory) {
  static const emulated_setup setup = {
      .devices = 1, .kernels = &lcomm_cuda_kernels_table, .seed = 3, .pause_us_max = 50};
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.progress = LCOMM_PROGRESS_THREAD;
  config.nodes = self->size;
  device = emulated_begin(&setup);
  lcomm_device_replace(device);
  world->device = device;
  world->comm = forked_create(self, &config);
  forked_require(
      self,
      device->use(0) == 0 && device->load() == 0 && device->stream.create(&world->stream) == 0 &&
          device->stream.create(&world->compute) == 0 && device->memory.get(64, memory) == 0,
      "the device does not begin");
}

static void end(forked *self, stream_world *world, void *memory, int kept) {
  forked_destroy(self, world->comm);
  forked_require(self,
                 device->stream.destroy(world->stream) == 0 &&
                     device->stream.destroy(world->compute) == 0 &&
                     device->memory.free(memory) == 0,
                 "the device does not end");
  int left = emulated_end();
  forked_require(self, left <= kept, "%d objects were left", left);
}

static void run(forked *self, stream_world *world, const stream_case *what) {
  stream_result result;
  stream_case shorter = *what;
  shorter.count = shorter.count < COUNT ? shorter.count : COUNT;
  stream_case_run(world, &shorter, &result);
  forked_require(self, result.measured && !result.is_wrong, "%s: %s", what->name, result.why);
  forked_require(self,
                 result.value.min <= result.value.median && result.value.median <= result.value.max,
                 "%s: no figures", what->name);
}

static void cases_sum_and_give_everything_back(forked *self) {
  static const stream_options options = {.samples = SAMPLES};
  double times[SAMPLES];
  void *memory = NULL;
  stream_world world = {.options = &options, .times = times};
  make(self, &world, &memory);
  stream_load load = {memory, put_little, free_nothing};
  world.load = &load;
  for (size_t i = 0; i < stream_case_count; i++) {
    run(self, &world, &stream_cases[i]);
  }
  end(self, &world, memory, 0);
}

static void without_products_nothing_is_said_to_be_hidden(forked *self) {
  static const stream_options options = {.samples = SAMPLES};
  double times[SAMPLES];
  void *memory = NULL;
  stream_result result;
  stream_world world = {.options = &options, .times = times, .no_load = "there is no cuBLAS"};
  make(self, &world, &memory);
  for (size_t i = 0; i < stream_case_count; i++) {
    if (strncmp(stream_cases[i].name, "hidden", 6) == 0) {
      stream_case_run(&world, &stream_cases[i], &result);
      forked_require(self,
                     !result.measured && !result.is_wrong && !stream_case_met(&result) &&
                         strcmp(result.why, "there is no cuBLAS") == 0,
                     "%s", result.why);
    }
  }
  end(self, &world, memory, 0);
}

static void targets_are_most_or_least(void **state) {
  stream_case most = {.target = 30}, least = {.target = 0.85, .is_least = true}, none = {0};
  stream_result result = {.what = &most, .measured = true, .value = {29, 30, 90}};
  (void)state;
  assert_true(stream_case_met(&result));
  result.value.median = 30.5;
  assert_false(stream_case_met(&result));
  result.what = &least;
  assert_true(stream_case_met(&result));
  result.value.median = 0.8;
  assert_false(stream_case_met(&result));
  result.what = &none;
  assert_true(stream_case_met(&result));
  result.measured = false;
  assert_false(stream_case_met(&result));
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(cases_sum_and_give_everything_back, 2),
    FORKED_TEST(without_products_nothing_is_said_to_be_hidden, 1),
    cmocka_unit_test(targets_are_most_or_least),
};
RUN_TESTS(tests)

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
#include "tools/stream/stream_replay.h"

enum { SAMPLES = 3, COUNT = 5000 };

static const lcomm_device_table *device;

/* Instead of a product of matrices. */
static int put_little(void *state, void *stream) {
  return device->set(state, 1, 64, stream);
}

static void free_nothing(void *state) {
  (void)state;
}

static const stream_graphs emulated_graphs = {emulated_capture_begin,      emulated_capture_end,
                                              emulated_graph_instantiate,  emulated_graph_launch,
                                              emulated_executable_destroy, emulated_graph_destroy};

typedef struct place {
  int nodes; /* 0: as many as ranks */
  const char *policy;
} place;

static void make(forked *self, stream_world *world, void **memory, place where) {
  static const emulated_setup setup = {
      .devices = 1, .kernels = &lcomm_cuda_kernels_table, .seed = 3, .pause_us_max = 50};
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.progress = LCOMM_PROGRESS_THREAD;
  config.nodes = where.nodes ? where.nodes : self->size;
  config.policy = where.policy;
  device = emulated_begin(&setup);
  lcomm_device_replace(device);
  world->device = device;
  world->graphs = &emulated_graphs;
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
  for (int nodes = 1; nodes <= self->size; nodes++) {
    double times[SAMPLES];
    void *memory = NULL;
    stream_world world = {.options = &options, .times = times};
    make(self, &world, &memory, (place){nodes, NULL});
    stream_load load = {memory, put_little, free_nothing};
    world.load = &load;
    for (size_t i = 0; i < stream_case_count; i++) {
      run(self, &world, &stream_cases[i]);
    }
    end(self, &world, memory, 0);
  }
}

static bool is_of_bits(const stream_case *what) {
  return strstr(what->name, "bits") != NULL;
}

static void calls_and_replays_have_the_bits_of_the_host(forked *self) {
  static const stream_options options = {.samples = SAMPLES};
  static const place places[] = {{1, "node=int8 min=1"},
                                 {2, "net=int8 min=1"},
                                 {2, "net=bf16+zstd min=1 check=xxhash"},
                                 {2, "net=topk:0.05 min=1"}};
  for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
    double times[SAMPLES];
    void *memory = NULL;
    stream_world world = {.options = &options, .times = times};
    make(self, &world, &memory, places[p]);
    for (size_t i = 0; i < stream_case_count; i++) {
      if (is_of_bits(&stream_cases[i])) {
        run(self, &world, &stream_cases[i]);
      }
    }
    end(self, &world, memory, 0);
  }
}

/* ------------------------------------------------------------------- graphs */

static int launch_nothing(void *executable, void *stream) {
  (void)executable;
  (void)stream;
  return 0;
}

static bool is_of_graphs(const stream_case *what) {
  return strncmp(what->name, "graph ", 6) == 0;
}

static void replays_that_do_nothing_are_wrong(forked *self) {
  static const stream_options options = {.samples = SAMPLES};
  double times[SAMPLES];
  void *memory = NULL;
  stream_result result;
  stream_graphs idle = emulated_graphs;
  stream_world world = {.options = &options, .times = times};
  make(self, &world, &memory, (place){0, NULL});
  idle.launch = launch_nothing;
  world.graphs = &idle;
  for (size_t i = 0; i < stream_case_count; i++) {
    if (is_of_graphs(&stream_cases[i])) {
      stream_case_run(&world, &stream_cases[i], &result);
      forked_require(self, result.is_wrong && !result.measured && result.why[0] != 0,
                     "%s: nothing is wrong", stream_cases[i].name);
    }
  }
  end(self, &world, memory, 0);
}

/* A stream that were still captured would take no sum. */
static void captures_that_fail_are_over(forked *self) {
  static const stream_options options = {.samples = SAMPLES};
  double times[SAMPLES];
  void *memory = NULL;
  stream_result result;
  stream_world world = {.options = &options, .times = times};
  stream_case none = {.name = "graph of nothing", .run = stream_replay_latency};
  make(self, &world, &memory, (place){0, NULL});
  lcomm_comm *comm = world.comm;
  world.comm = NULL;
  stream_work w = {.world = &world, .result = &result};
  forked_require(self, !stream_replay_begin(&w, stream_put_sum) && result.is_wrong,
                 "a sum without a communicator was captured");
  stream_replay_end(&w);
  world.comm = comm;
  none.count = COUNT;
  run(self, &world, &none);
  end(self, &world, memory, 0);
}

static void without_graphs_nothing_is_said_of_them(forked *self) {
  static const stream_options options = {.samples = SAMPLES};
  double times[SAMPLES];
  void *memory = NULL;
  stream_result result;
  stream_world world = {.options = &options, .times = times, .no_graphs = "there is no driver"};
  make(self, &world, &memory, (place){0, NULL});
  world.graphs = NULL;
  for (size_t i = 0; i < stream_case_count; i++) {
    if (is_of_graphs(&stream_cases[i])) {
      stream_case_run(&world, &stream_cases[i], &result);
      forked_require(self,
                     !result.measured && !result.is_wrong &&
                         strcmp(result.why, "there is no driver") == 0,
                     "%s", result.why);
    }
  }
  end(self, &world, memory, 0);
}

static void without_products_nothing_is_said_to_be_hidden(forked *self) {
  static const stream_options options = {.samples = SAMPLES};
  double times[SAMPLES];
  void *memory = NULL;
  stream_result result;
  stream_world world = {.options = &options, .times = times, .no_load = "there is no cuBLAS"};
  make(self, &world, &memory, (place){0, NULL});
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
    FORKED_TEST(calls_and_replays_have_the_bits_of_the_host, 2),
    FORKED_TEST(replays_that_do_nothing_are_wrong, 2),
    FORKED_TEST(captures_that_fail_are_over, 2),
    FORKED_TEST(without_graphs_nothing_is_said_of_them, 1),
    FORKED_TEST(without_products_nothing_is_said_to_be_hidden, 1),
    cmocka_unit_test(targets_are_most_or_least),
};
RUN_TESTS(tests)

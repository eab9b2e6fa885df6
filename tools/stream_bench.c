/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sums in order with a stream of a device: how long they take, what they hide behind, and what a
 * program may do meanwhile. */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/common/tool_output.h"
#include "tools/stream/stream_report.h"

static const char program[] = "stream_bench";

enum { EXIT_OK = 0, EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_NO_DEVICE = 3 };

static int say(int status, const char *sentence) {
  fprintf(stderr, "%s: %s\n", program, sentence);
  return status;
}

static bool write_json(const stream_world *world, const stream_result *results, size_t count) {
  const char *path = world->options->json_path;
  if (!path || lcomm_rank(world->comm) != 0) {
    return true;
  }
  FILE *file = tool_output_open(path);
  return tool_output_close(program, path, file, file && stream_json(world, results, count, file));
}

static int measure(stream_world *world) {
  stream_result results[STREAM_CASES_MAX];
  size_t count = 0;
  bool good = true;
  for (size_t i = 0; i < stream_case_count && good; i++) {
    if (!stream_case_is_wanted(&stream_cases[i], world->options)) {
      continue;
    }
    (void)alarm((unsigned)world->options->limit_s);
    stream_case_run(world, &stream_cases[i], &results[count++]);
    good = !results[count - 1].is_wrong && write_json(world, results, count);
  }
  (void)alarm(0);
  if (lcomm_rank(world->comm) == 0) {
    good = stream_print(world, results, count, stdout) && good;
  } else if (count > 0 && results[count - 1].is_wrong) {
    (void)say(EXIT_WRONG, results[count - 1].why);
  }
  return good ? EXIT_OK : EXIT_WRONG;
}

/* Ranks take the devices in turn. */
static bool begin_device(stream_world *world) {
  int count = 0;
  const lcomm_device_table *device = world->device;
  return device->count(&count) == 0 && count > 0 &&
         device->use(lcomm_rank(world->comm) % count) == 0 && device->load() == 0 &&
         device->stream.create(&world->stream) == 0 && device->stream.create(&world->compute) == 0;
}

/* cuBLAS takes its time, and memory: only for cases that need it. */
static bool is_load_wanted(const stream_options *options) {
  for (size_t i = 0; i < stream_case_count; i++) {
    if (stream_cases[i].needs_load && stream_case_is_wanted(&stream_cases[i], options)) {
      return true;
    }
  }
  return false;
}

static int measure_all(stream_world *world) {
  stream_load load;
  stream_graphs graphs;
  lcomm_why no_load = {0}, no_graphs = {0};
  bool loaded =
      is_load_wanted(world->options) && stream_load_cublas(world->device, &load, &no_load);
  world->load = loaded ? &load : NULL;
  world->no_load = no_load.text;
  world->graphs = stream_graphs_driver(&graphs, &no_graphs) ? &graphs : NULL;
  world->no_graphs = no_graphs.text;
  int exit_status = measure(world);
  if (loaded) {
    load.free(load.state);
  }
  return exit_status;
}

static int run(const stream_options *options) {
  stream_world world = {.options = options};
  lcomm_why why;
  lcomm_config config = LCOMM_CONFIG_INIT;
  world.device = lcomm_device_get(&why);
  if (!world.device) {
    return say(EXIT_NO_DEVICE, why.text);
  }
  config.policy = options->policy;
  config.nodes = options->nodes;
  config.progress = LCOMM_PROGRESS_THREAD;
  lcomm_status status = lcomm_create_env(&config, &world.comm);
  if (status != LCOMM_OK) {
    return say(EXIT_WRONG, lcomm_last_error(NULL));
  }
  world.times = malloc(options->samples * sizeof *world.times);
  if (!world.times || !begin_device(&world)) {
    return say(EXIT_WRONG, "the device does not begin, or memory has run out");
  }
  int exit_status = measure_all(&world);
  (void)lcomm_destroy(world.comm);
  (void)world.device->stream.destroy(world.stream);
  (void)world.device->stream.destroy(world.compute);
  free(world.times);
  return exit_status;
}

int main(int argc, char **argv) {
  stream_options options;
  char error[TOOL_ERROR_MAX];
  tool_parse parse = stream_options_parse(argc, argv, &options, error);
  if (parse != TOOL_RUN) {
    return tool_answer(program, parse, stream_help, error);
  }
  if (options.list) {
    return stream_list(stdout) ? EXIT_OK : EXIT_WRONG;
  }
  if (!tool_output_check(options.json_path, error)) {
    return say(EXIT_USAGE, error);
  }
  return run(&options);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/fuzz_promise.h"
#include "tools/simulation/simulate_study.h"

static void check_refusal(const char *why) {
  fuzz_require(memchr(why, '\0', SIMULATE_WHY_MAX) != NULL && why[0] != '\0',
               "a refusal is a sentence");
}

static void check_workload(simulate_workload *workload) {
  uint64_t parameters = 0;
  fuzz_require(workload->count > 0, "a workload has tensors");
  for (size_t i = 0; i < workload->count; i++) {
    fuzz_require(workload->tensors[i].count > 0, "tensors have elements");
    fuzz_require(workload->tensors[i].rows == 0 ||
                     (workload->tensors[i].columns > 0 &&
                      workload->tensors[i].rows <= workload->tensors[i].count &&
                      workload->tensors[i].columns <= workload->tensors[i].count),
                 "matrices have no more rows and columns than elements");
    fuzz_require(memchr(workload->tensors[i].name, '\0', SIMULATE_TENSOR_NAME_MAX) != NULL,
                 "names end");
    parameters += workload->tensors[i].count;
  }
  fuzz_require(parameters == workload->parameters && parameters <= SIMULATE_PARAMETERS_MAX,
               "parameters are the sum of tensors and not too many");
  fuzz_require(simulate_workload_compute(workload) < SIMULATE_TIME_MAX, "times can be added");
  simulate_workload_free(workload);
}

static void read_speeds(const char *text, size_t length, simulate_place place) {
  char why[SIMULATE_WHY_MAX] = "";
  simulate_speeds speeds = simulate_speeds_built_in(place);
  if (!simulate_speeds_parse(text, length, place, &speeds, why)) {
    check_refusal(why);
  }
  fuzz_require(speeds.count > 0 && speeds.count <= SIMULATE_SPEEDS_MAX, "codecs are not too many");
  for (size_t i = 0; i < speeds.count; i++) {
    simulate_speed it = simulate_speeds_of(&speeds, &speeds.codec[i].choice);
    fuzz_require(it.encode_gb_s > 0 && it.decode_gb_s > 0 && it.add_gb_s > 0,
                 "speeds are positive");
  }
}

static void read_workload(const char *text, size_t length) {
  char why[SIMULATE_WHY_MAX] = "";
  simulate_workload workload;
  if (simulate_workload_parse(text, length, &workload, why)) {
    check_workload(&workload);
  } else {
    check_refusal(why);
  }
}

static void read_trace(const char *text, size_t length) {
  char why[SIMULATE_WHY_MAX] = "", path[64];
  simulate_workload workload;
  int file = memfd_create("trace", 0);
  fuzz_require(file >= 0 && write(file, text, length) == (ssize_t)length,
               "the test machine has memory files");
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  if (simulate_workload_read_trace(path, &workload, why)) {
    check_workload(&workload);
  } else {
    check_refusal(why);
  }
  close(file);
}

/* Words between blanks. */
static void read_options(char *text) {
  enum { WORDS_MAX = 16 };
  static simulate_options options;
  char error[TOOL_ERROR_MAX] = "", *argv[WORDS_MAX + 2] = {(char *)"simulate"}, *rest = NULL;
  int argc = 1;
  for (char *word = strtok_r(text, " \n", &rest); word && argc <= WORDS_MAX;
       word = strtok_r(NULL, " \n", &rest)) {
    argv[argc++] = word;
  }
  tool_parse parse = simulate_options_parse(argc, argv, &options, error);
  fuzz_require(parse != TOOL_USAGE || error[0] != '\0', "a refusal is a sentence");
  if (parse == TOOL_RUN) {
    fuzz_require(options.policy_count > 0 && options.policy_count <= SIMULATE_POLICIES_MAX,
                 "there are policies");
    fuzz_require(options.node_count > 0 && options.node_count <= SIMULATE_SWEEP_MAX,
                 "there are nodes");
    fuzz_require(options.parameters > 0 && options.parameters <= SIMULATE_PARAMETERS_MAX,
                 "there are parameters");
    for (size_t i = 0; i < options.link_count; i++) {
      fuzz_require(options.links[i].link.bytes_per_s > 0, "links have a rate");
    }
  }
}

void lcomm_fuzz_simulate(const uint8_t *data, size_t size) {
  if (size < 1) {
    return;
  }
  char *text = malloc(size);
  fuzz_require(text != NULL, "the test machine has memory");
  memcpy(text, data + 1, size - 1);
  text[size - 1] = '\0';
  switch (data[0] % 4) {
  case 0:
    read_speeds(text, size - 1, SIMULATE_IN_MEMORY);
    read_speeds(text, size - 1, SIMULATE_IN_CACHE);
    break;
  case 1:
    read_workload(text, size - 1);
    break;
  case 2:
    read_trace(text, size - 1);
    break;
  default:
    read_options(text);
  }
  free(text);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/experiment/experiment_matrix.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *experiment_policy_name(const char *policy) {
  return policy[0] != '\0' ? policy : "exact";
}

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* Fisher and Yates. */
static void shuffle(experiment_case *cases, size_t count, uint64_t *state) {
  for (size_t i = count; i > 1; i--) {
    size_t other = (size_t)(next_random(state) % i);
    experiment_case kept = cases[i - 1];
    cases[i - 1] = cases[other];
    cases[other] = kept;
  }
}

/* "run-2x1-50mbit-0ms-mlp-p1_net_int8-s1-r1": the number of the policy makes it unique. */
static void name_case(experiment_case *of, size_t policy) {
  char label[48];
  size_t used = 0;
  const char *text = experiment_policy_name(of->policy);
  for (; *text != '\0' && used + 1 < sizeof label; text++) {
    label[used++] = (char)(isalnum((unsigned char)*text) ? *text : '_');
  }
  label[used] = '\0';
  snprintf(of->name, sizeof of->name, "%s-%dx%d%s%s-%gms%s%s-p%zu_%s-s%llu-r%d", of->of->name,
           of->world.hosts, of->world.ranks, of->rate[0] ? "-" : "", of->rate, of->delay_ms,
           of->model[0] ? "-" : "", of->model, policy, label, (unsigned long long)of->seed,
           of->repetition);
}

/* Combination number `i` of a repetition. */
static experiment_case make_case(const experiment_workload *run, size_t i, int repetition) {
  experiment_case made = {.of = run, .repetition = repetition};
  size_t policy = i % run->policies.count;
  i /= run->policies.count;
  made.policy = run->policies.words[policy];
  made.rate = run->rates.words[i % run->rates.count];
  i /= run->rates.count;
  made.delay_ms = run->delays_ms.numbers[i % run->delays_ms.count];
  i /= run->delays_ms.count;
  made.world = run->worlds[i % run->world_count];
  i /= run->world_count;
  made.model = run->models.words[i % run->models.count];
  i /= run->models.count;
  made.seed = (uint64_t)run->seeds.numbers[i];
  name_case(&made, policy);
  return made;
}

static size_t combinations(const experiment_workload *run) {
  return run->policies.count * run->rates.count * run->delays_ms.count * run->world_count *
         run->models.count * run->seeds.count;
}

/* Those of one repetition, behind each other. Returns how many. */
static size_t make_round(const experiment_file *file, int repetition, experiment_case *cases) {
  size_t made = 0;
  for (size_t w = 0; w < file->workload_count; w++) {
    const experiment_workload *run = &file->workloads[w];
    for (size_t i = 0; repetition <= run->repetitions && i < combinations(run); i++) {
      cases[made++] = make_case(run, i, repetition);
    }
  }
  return made;
}

experiment_case *experiment_matrix_make(const experiment_file *file, size_t *count) {
  experiment_case *cases = calloc(EXPERIMENT_CASES_MAX, sizeof *cases);
  uint64_t state = file->seed;
  *count = 0;
  for (int repetition = 1;; repetition++) {
    size_t made = cases ? make_round(file, repetition, cases + *count) : 0;
    if (made == 0) {
      return cases;
    }
    shuffle(cases + *count, made, &state);
    *count += made;
  }
}

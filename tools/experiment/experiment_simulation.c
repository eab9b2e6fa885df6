/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/experiment/experiment_simulation.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libcomm/plan/policy.h"
#include "libcomm/plan/warmup.h"
#include "tools/common/tool_cache.h"
#include "tools/common/tool_origin.h"
#include "tools/experiment/experiment_estimate.h"
#include "tools/experiment/experiment_folder.h"
#include "tools/experiment/experiment_runs.h"
#include "tools/simulation/simulate_study.h"

static const double STEPS_COUNTED_MAX = 1e7;

/* ------------------------------------------------------------------ workload */

/* NULL: none of its runs says which tensors it has. To be freed. */
static char *workload_of(const experiment *of, const experiment_group *it, double compute_s) {
  char folder[EXPERIMENT_PATH_MAX], *text = NULL;
  for (size_t i = 0; i < of->count && !text; i++) {
    if (of->results[i].state == EXPERIMENT_GOOD && experiment_group_has(it, &of->cases[i])) {
      experiment_case_folder(of, i, folder);
      char *log = experiment_folder_results(folder);
      text = log ? experiment_simulation_workload(log, compute_s) : NULL;
      free(log);
    }
  }
  return text;
}

/* ------------------------------------------------------------------- command */

/* What emulated hosts share. */
typedef struct shared {
  int processors; /* 0: not known */
  uint64_t cache; /* bytes of the last level; 0: not known */
} shared;

/* Of the machine that all results are of, "2 x AMD ...", its cache where it is this one; nothing is
 * known of several. */
static shared shared_of(const experiment *of) {
  char here[TOOL_ORIGIN_TEXT_MAX];
  shared found = {0};
  const char *machine = NULL;
  for (size_t i = 0; i < of->count; i++) {
    const experiment_result *had = &of->results[i];
    if (had->state != EXPERIMENT_GOOD) {
      continue;
    }
    if (machine && strcmp(machine, had->machine) != 0) {
      return (shared){0};
    }
    machine = had->machine;
    found.processors = (int)strtol(machine, NULL, 10);
  }
  if (machine && strcmp(machine, tool_origin_machine(here)) == 0) {
    found.cache = tool_cache_size(TOOL_CACHE_FOLDER);
  }
  return found;
}

/* As tools/cluster makes hosts: a link lets 128 KiB pass at once after a pause, and hosts share the
 * processors of the machine. */
static void add_world(experiment_command *command, const experiment_group *it, const char *policy,
                      shared machine) {
  static const double LATENCY_MS = 0.03;
  experiment_command_add(command, "simulate");
  experiment_command_add_printed(command, "--nodes=%d", it->world.hosts);
  experiment_command_add_printed(command, "--ranks=%d", it->world.ranks);
  experiment_command_add_printed(command, "--link=%s", it->rate);
  experiment_command_add_printed(command, "--latency=%.6gms", it->delay_ms + LATENCY_MS);
  experiment_command_add(command, "--burst=128K");
  experiment_command_add_printed(command, "--processors=%d", machine.processors);
  experiment_command_add_printed(command, "--cache=%" PRIu64, machine.cache);
  experiment_command_add(command, "--one-machine");
  experiment_command_add_printed(command, "--policy=%s", policy);
}

/* As many as were measured: what a link lets pass at once at their beginning counts likewise. The
 * first one does not count. */
static void add_steps(experiment_command *command, double steps) {
  experiment_command_add_printed(command, "--steps=%.0f",
                                 fmax(2.0, fmin(steps, SIMULATE_STEPS_MAX)));
}

_Static_assert((int)TOOL_ERROR_MAX >= (int)SIMULATE_WHY_MAX, "a sentence of either must fit");

/* Seconds of a step, 0 with a sentence in `why`. */
static double simulate(experiment_command *command, char *why) {
  simulate_options options;
  simulate_study study;
  char error[TOOL_ERROR_MAX] = "";
  double step_s = 0.0;
  if (simulate_options_parse(command->count, command->words, &options, error) != TOOL_RUN ||
      !simulate_study_run(&options, &study, error)) {
    snprintf(why, EXPERIMENT_WHY_MAX, "%.250s", error);
    return 0.0;
  }
  if (study.cases[0].done) {
    step_s = study.cases[0].result.step_s;
  } else {
    snprintf(why, EXPERIMENT_WHY_MAX, "%.250s", study.cases[0].why);
  }
  simulate_study_free(&study);
  return step_s;
}

static double run(experiment_command *command, experiment_simulated *made) {
  if (command->broken) {
    snprintf(made->why, sizeof made->why, "the command is too long");
    return 0.0;
  }
  experiment_command_show(command, made->command, sizeof made->command);
  return simulate(command, made->why);
}

/* ----------------------------------------------------------------- trainings */

static double mean_compute_s(const experiment_groups *of, const experiment_group *place) {
  double sum = 0.0, count = 0.0;
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    if (experiment_same_place(it, place) && it->runs > 0) {
      sum += it->compute_s;
      count += 1.0;
    }
  }
  return count > 0.0 ? sum / count : 0.0;
}

/* All ranks compute at the same time, so where they are more than processors, each has been given a
 * share of one. */
static double processor_s(const experiment_group *it, double compute_s, int processors) {
  double ranks = it->world.hosts * it->world.ranks;
  return compute_s * fmin(1.0, processors / ranks);
}

/* The file of the tensors. */
static bool write_workload(const experiment_groups *of, size_t i, int processors,
                           const char *folder, char path[EXPERIMENT_PATH_MAX],
                           experiment_simulated *made) {
  experiment_group *it = &of->groups[i];
  char name[64], error[EXPERIMENT_ERROR_MAX] = "";
  double compute_s = processor_s(it, mean_compute_s(of, it), processors);
  char *text = workload_of(of->of, it, compute_s);
  if (!text) {
    snprintf(made->why, sizeof made->why, "the log of the run does not name its tensors");
    return false;
  }
  snprintf(name, sizeof name, "workload%zu.json", i);
  snprintf(path, EXPERIMENT_PATH_MAX, "%s/%s", folder, name);
  bool good = experiment_folder_write(folder, name, text, strlen(text), error);
  snprintf(made->why, sizeof made->why, "%.250s", error);
  free(text);
  return good;
}

/* Steps of the warm-up, and those in which Adam's variance is refreshed, are exact. */
static double exact_share(const experiment_group *it) {
  lcomm_policy policy;
  lcomm_why error;
  if (lcomm_policy_parse(it->policy, &policy, &error) != LCOMM_OK) {
    return 0.0;
  }
  uint64_t steps = it->steps > 0.0 ? (uint64_t)fmin(it->steps, STEPS_COUNTED_MAX) : 0, exact = 0;
  for (uint64_t step = 0; step < steps; step++) {
    exact += lcomm_warmup_tensors_are_exact(&policy, step);
  }
  return steps > 0 ? (double)exact / (double)steps : 0.0;
}

static double simulate_steps(experiment_group *it, const char *policy, shared machine,
                             const char *workload) {
  experiment_command command = {.count = 0};
  add_world(&command, it, policy, machine);
  add_steps(&command, it->steps);
  experiment_command_add_printed(&command, "--workload=%s", workload);
  return run(&command, &it->simulated);
}

/* Steps are simulated as they are after the warm-up. */
static void simulate_training(experiment_groups *of, size_t i, shared machine, const char *folder) {
  experiment_group *it = &of->groups[i];
  char path[EXPERIMENT_PATH_MAX];
  if (!write_workload(of, i, machine.processors, folder, path, &it->simulated)) {
    return;
  }
  double share = exact_share(it);
  double exact_s = share > 0.0 ? simulate_steps(it, "", machine, path) : 0.0;
  double step_s = simulate_steps(it, it->policy, machine, path);
  bool known = step_s > 0.0 && (exact_s > 0.0 || share <= 0.0);
  it->simulated.step_s = known ? share * exact_s + (1.0 - share) * step_s : 0.0;
  it->simulated.exact_share = share;
}

/* --------------------------------------------------------------- collectives */

/* Sizes and repetitions do not change what an operation does; other options may. */
static bool is_plain(const char *options) {
  static const char *const known[] = {"-b", "-e", "-f", "-i", "-n", "-w"};
  char text[EXPERIMENT_TEXT_MAX], *rest = NULL;
  snprintf(text, sizeof text, "%s", options);
  for (char *word = strtok_r(text, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
    bool plain = word[0] != '-';
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
      plain |= strcmp(word, known[i]) == 0;
    }
    if (!plain) {
      return false;
    }
  }
  return true;
}

static bool is_allreduce(const experiment_workload *of) {
  const char *name = strrchr(of->program, '/');
  name = name ? name + 1 : of->program;
  return strcmp(name, "allreduce_perf") == 0 || strcmp(name, "libcomm-allreduce_perf") == 0;
}

/* As the tool does: a policy with error feedback, or with a class of auto that may have it, is
 * called through tensors, which it belongs to. */
static bool has_tensors(const char *text) {
  lcomm_policy policy;
  lcomm_why error;
  return lcomm_policy_parse(text, &policy, &error) == LCOMM_OK && policy.net.error_feedback;
}

static void simulate_rows(experiment_group *it, shared machine) {
  static const double SAMPLES = 5.0, WARMUPS = 1.0; /* where its options do not say */
  double steps = experiment_option_number(it->of->options, "-n ", SAMPLES) +
                 experiment_option_number(it->of->options, "-w ", WARMUPS);
  if (!is_allreduce(it->of) || !is_plain(it->of->options)) {
    snprintf(it->simulated.why, sizeof it->simulated.why,
             "only trainings and plain calls of allreduce_perf are");
    return;
  }
  for (size_t r = 0; r < it->row_count; r++) {
    experiment_command command = {.count = 0};
    add_world(&command, it, it->policy, machine);
    if (!has_tensors(it->policy)) {
      experiment_command_add(&command, "--calls");
    }
    add_steps(&command, steps);
    experiment_command_add_printed(&command, "--parameters=%.0f",
                                   fmax(1.0, it->rows[r].size / sizeof(float)));
    experiment_command_add_printed(&command, "--tensor=%.0f", fmax(64.0, it->rows[r].size));
    it->simulated.row_s[r] = run(&command, &it->simulated);
  }
}

/* ----------------------------------------------------------------------- all */

static double simulated_time(const experiment_group *of) {
  return of->epoch_count > 0 ? of->simulated.step_s
         : of->row_count > 0 ? of->simulated.row_s[of->row_count - 1]
                             : 0.0;
}

static void compare(experiment_groups *of) {
  for (size_t i = 0; i < of->count; i++) {
    experiment_group *it = &of->groups[i];
    const experiment_group *exact = experiment_find_exact(of, it);
    double time_s = simulated_time(it);
    it->simulated.speedup = exact && time_s > 0.0 ? simulated_time(exact) / time_s : 0.0;
  }
}

void experiment_groups_simulate(experiment_groups *of, const char *folder) {
  shared machine = shared_of(of->of);
  mkdir(folder, 0777);
  for (size_t i = 0; i < of->count; i++) {
    experiment_group *it = &of->groups[i];
    if (it->runs == 0 || it->of->where != EXPERIMENT_CLUSTER) {
      continue;
    }
    it->simulated.tried = true;
    if (machine.processors <= 0) {
      snprintf(it->simulated.why, sizeof it->simulated.why,
               "the results are not of one machine whose processors are known");
    } else if (it->epoch_count > 0) {
      simulate_training(of, i, machine, folder);
    } else {
      simulate_rows(it, machine);
    }
  }
  compare(of);
}

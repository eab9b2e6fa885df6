/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/experiment/experiment_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/tool_origin.h"
#include "tools/common/tool_progress.h"
#include "tools/experiment/experiment_estimate.h"
#include "tools/experiment/experiment_folder.h"

#define CLUSTER_LIMIT_S 120.0
enum { CANNOT_HERE = 77, NO_ROOT = 2, SHOWN_MAX = 8192 };

/* ---------------------------------------------------------------- begin, end */

void experiment_case_folder(const experiment *of, size_t i, char folder[EXPERIMENT_PATH_MAX]) {
  snprintf(folder, EXPERIMENT_PATH_MAX, "%.*s/runs/%s",
           EXPERIMENT_PATH_MAX - EXPERIMENT_CASE_NAME_MAX - 8, of->options->out, of->cases[i].name);
}

static bool case_command(const experiment *of, size_t i, experiment_command *command,
                         char shown[SHOWN_MAX], char *error) {
  char folder[EXPERIMENT_PATH_MAX];
  experiment_case_folder(of, i, folder);
  if (!experiment_command_make(&of->cases[i], folder, of->cluster, command, error)) {
    return false;
  }
  experiment_command_show(command, shown, SHOWN_MAX);
  return true;
}

/* FNV-1a of the folder: experiments in different folders have hosts of their own. */
static void name_cluster(experiment *of) {
  uint32_t hash = UINT32_C(2166136261);
  for (const char *c = of->options->out; *c != '\0'; c++) {
    hash = (hash ^ (unsigned char)*c) * UINT32_C(16777619);
  }
  snprintf(of->cluster, sizeof of->cluster, "x%08x", hash);
}

static bool read_results(experiment *of, char *error) {
  experiment_command command;
  char shown[SHOWN_MAX], folder[EXPERIMENT_PATH_MAX];
  for (size_t i = 0; i < of->count; i++) {
    if (!case_command(of, i, &command, shown, error)) {
      return false;
    }
    experiment_case_folder(of, i, folder);
    experiment_result_read(folder, shown, &of->results[i]);
  }
  return true;
}

bool experiment_begin(experiment *made, const experiment_options *options, char *error) {
  memset(made, 0, sizeof *made);
  made->options = options;
  if (!experiment_file_read(options->file, &made->file, error)) {
    return false;
  }
  name_cluster(made);
  made->cases = experiment_matrix_make(&made->file, &made->count);
  made->results = calloc(made->count, sizeof *made->results);
  if (!made->cases || !made->results) {
    snprintf(error, EXPERIMENT_ERROR_MAX, "no memory for %zu runs", made->count);
    return false;
  }
  return read_results(made, error);
}

void experiment_end(experiment *of) {
  free(of->cases);
  free(of->results);
}

/* ------------------------------------------------------------------ estimate */

static double estimate(const experiment *of, size_t i) {
  return experiment_estimate(&of->cases[i], of->file.limit_s);
}

/* How much longer runs take than was thought: of those that are over. */
static double correction(const experiment *of) {
  double took_s = 0.0, thought_s = 0.0;
  for (size_t i = 0; i < of->count; i++) {
    if (of->results[i].state == EXPERIMENT_GOOD) {
      took_s += of->results[i].wall_s;
      thought_s += estimate(of, i);
    }
  }
  return thought_s > 0.0 ? took_s / thought_s : 1.0;
}

/* Of the runs that are left. */
static double left_s(const experiment *of, size_t from) {
  double sum = 0.0;
  for (size_t i = from; i < of->count; i++) {
    sum += of->results[i].state == EXPERIMENT_GOOD ? 0.0 : estimate(of, i);
  }
  return sum * correction(of);
}

void experiment_announce(const experiment *of) {
  char about[32], most[32];
  size_t left = 0;
  for (size_t i = 0; i < of->count; i++) {
    left += of->results[i].state != EXPERIMENT_GOOD;
  }
  experiment_show_time(left_s(of, 0), about, sizeof about);
  experiment_show_time((double)left * of->file.limit_s, most, sizeof most);
  printf("%s\n%zu runs, %zu of them left: about %s, at most %s\nresults: %s\n",
         of->file.title[0] ? of->file.title : of->options->file, of->count, left, about, most,
         of->options->out);
  fflush(stdout);
}

/* ------------------------------------------------------------------- machines */

/* Results of another machine are no company for those of this one, unless that is wanted. */
static bool same_machine(const experiment *of, char *error) {
  char here[TOOL_ORIGIN_TEXT_MAX];
  tool_origin_machine(here);
  for (size_t i = 0; i < of->count; i++) {
    const experiment_result *had = &of->results[i];
    if (had->state != EXPERIMENT_MISSING && strcmp(had->machine, here) != 0 &&
        !of->options->mix_machines) {
      snprintf(error, EXPERIMENT_ERROR_MAX,
               "%.120s has results of another machine (%.100s; this is %.100s); give --out another "
               "folder, or --mix-machines",
               of->options->out, had->machine, here);
      return false;
    }
  }
  return true;
}

/* -------------------------------------------------------------------- cluster */

static int run_cluster(const experiment *of, const char *folder, const char *out,
                       const char *const *words, char *error) {
  experiment_command command = {.count = 0};
  char out_path[EXPERIMENT_PATH_MAX + 16], err_path[EXPERIMENT_PATH_MAX + 16];
  if (!experiment_command_add_cluster(&command, of->cluster, error)) {
    return -1;
  }
  for (; *words; words++) {
    experiment_command_add(&command, *words);
  }
  snprintf(out_path, sizeof out_path, "%s/%s", folder, out);
  snprintf(err_path, sizeof err_path, "%s/cluster.err", folder);
  experiment_process process = {command.words, out_path, err_path, NULL, CLUSTER_LIMIT_S};
  experiment_outcome outcome = experiment_process_run(&process, NULL, NULL);
  return outcome.end == EXPERIMENT_EXITED ? outcome.code : -1;
}

/* Hosts as this case wants them; its exit status, 0: they are there. */
static int bring_up(const experiment *of, size_t i, const char *folder, char *error) {
  const experiment_case *it = &of->cases[i];
  char hosts[16], slots[16], delay[32];
  snprintf(hosts, sizeof hosts, "%d", it->world.hosts);
  snprintf(slots, sizeof slots, "%d", it->world.ranks);
  snprintf(delay, sizeof delay, "%.3fms", it->delay_ms);
  const char *words[] = {"up",     "--hosts", hosts,     "--slots", slots,
                         "--rate", it->rate,  "--delay", delay,     NULL};
  int status = run_cluster(of, folder, "out", words, error);
  char *said = status == 0 ? NULL : experiment_folder_text(folder, "cluster.err");
  if (status != 0 && error[0] == '\0') {
    snprintf(error, EXPERIMENT_ERROR_MAX, "no emulated hosts: %.300s", said ? said : "");
    error[strcspn(error, "\n")] = '\0';
  }
  free(said);
  return status;
}

static void take_down(const experiment *of) {
  char error[EXPERIMENT_ERROR_MAX] = "";
  const char *words[] = {"down", NULL};
  for (size_t i = 0; i < of->file.workload_count; i++) {
    if (of->file.workloads[i].where == EXPERIMENT_CLUSTER) {
      run_cluster(of, of->options->out, "cluster.log", words, error);
      return;
    }
  }
}

/* ----------------------------------------------------------------------- runs */

typedef struct shown {
  tool_progress bar;
  const experiment *of;
  size_t at;
} shown;

static void show(void *context) {
  const shown *what = context;
  char line[EXPERIMENT_CASE_NAME_MAX + 64], left[32];
  experiment_show_time(left_s(what->of, what->at), left, sizeof left);
  snprintf(line, sizeof line, "%s left  %s", left, what->of->cases[what->at].name);
  tool_progress_next(&what->bar, line);
}

/* The command of a case, with its limit. */
static experiment_outcome run_command(experiment *of, size_t i, const char *folder,
                                      const experiment_command *command, shown *what) {
  char out[EXPERIMENT_PATH_MAX + 16], err[EXPERIMENT_PATH_MAX + 16], nodes[32];
  char policy[EXPERIMENT_WORD_MAX + 16];
  const experiment_case *it = &of->cases[i];
  const char *set[3] = {NULL};
  size_t count = 0;
  snprintf(out, sizeof out, "%s/out", folder);
  snprintf(err, sizeof err, "%s/err", folder);
  snprintf(nodes, sizeof nodes, "LCOMM_NODES=%d", it->world.hosts);
  snprintf(policy, sizeof policy, "LCOMM_POLICY=%s", it->policy);
  if (it->of->where == EXPERIMENT_POSE) {
    set[count++] = nodes;
  }
  if (experiment_kind_of(it->of) == EXPERIMENT_COMMAND) {
    set[count++] = policy;
  }
  experiment_process process = {command->words, out, err, set, of->file.limit_s};
  return experiment_process_run(&process, show, what);
}

/* What the hosts sent; after a run that was ended by force, no process of it stays behind. */
static void finish_cluster(const experiment *of, const char *folder, experiment_how end) {
  char error[EXPERIMENT_ERROR_MAX] = "";
  const char *words[] = {"bytes", "--json", NULL};
  if (end == EXPERIMENT_LATE || end == EXPERIMENT_STOPPED) {
    take_down(of);
  } else {
    run_cluster(of, folder, "bytes.json", words, error);
  }
}

/* One case; EXPERIMENT_COMPLETE also when it failed, which its result says. */
static experiment_verdict run_case(experiment *of, size_t i, shown *what, char *error) {
  experiment_command command;
  char folder[EXPERIMENT_PATH_MAX], text[SHOWN_MAX];
  bool emulated = of->cases[i].of->where == EXPERIMENT_CLUSTER;
  experiment_case_folder(of, i, folder);
  if (!case_command(of, i, &command, text, error) || !experiment_folder_begin(folder, error)) {
    return EXPERIMENT_TROUBLE;
  }
  int status = emulated ? bring_up(of, i, folder, error) : 0;
  if (experiment_process_is_stopped()) {
    return EXPERIMENT_INTERRUPTED;
  }
  if (status != 0) {
    return status == CANNOT_HERE || status == NO_ROOT ? EXPERIMENT_NOT_HERE : EXPERIMENT_TROUBLE;
  }
  experiment_outcome outcome = run_command(of, i, folder, &command, what);
  if (emulated) {
    finish_cluster(of, folder, outcome.end);
  }
  if (outcome.end == EXPERIMENT_STOPPED) {
    return EXPERIMENT_INTERRUPTED;
  }
  return experiment_folder_end(folder, &of->cases[i], text, &outcome, of->file.limit_s,
                               &of->results[i], error)
             ? EXPERIMENT_COMPLETE
             : EXPERIMENT_TROUBLE;
}

static void report_case(const experiment *of, size_t i, const shown *what) {
  tool_progress_end(&what->bar);
  if (of->results[i].state == EXPERIMENT_FAILED) {
    fprintf(stderr, "  failed: %s: %s\n", of->cases[i].name, of->results[i].why);
  } else if (!what->bar.shown) {
    fprintf(stderr, "  %zu of %zu, %.1f s: %s\n", i + 1, of->count, of->results[i].wall_s,
            of->cases[i].name);
  }
}

experiment_verdict experiment_run_all(experiment *of, char *error) {
  experiment_verdict verdict = EXPERIMENT_COMPLETE;
  if (!same_machine(of, error) || !experiment_folder_lock(of->options->out, error)) {
    return EXPERIMENT_TROUBLE;
  }
  shown what = {.of = of, .bar = tool_progress_begin(of->count)};
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  setenv("OPENBLAS_NUM_THREADS", "1", 0);
  take_down(of); /* what a kill has left behind */
  experiment_process_watch();
  for (size_t i = 0; i < of->count && verdict == EXPERIMENT_COMPLETE; i++) {
    what.at = i;
    if (of->results[i].state != EXPERIMENT_GOOD) {
      verdict = run_case(of, i, &what, error);
      report_case(of, i, &what);
    }
    tool_progress_add(&what.bar, 1);
  }
  tool_progress_end(&what.bar);
  if (verdict != EXPERIMENT_NOT_HERE) {
    take_down(of);
  }
  for (size_t i = 0; i < of->count && verdict == EXPERIMENT_COMPLETE; i++) {
    verdict = of->results[i].state == EXPERIMENT_GOOD ? verdict : EXPERIMENT_WITH_FAILURES;
  }
  return verdict;
}

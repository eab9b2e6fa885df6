/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/experiment/experiment_programs.h"

#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------- finding */

/* The folder of this program. */
static void own_folder(char folder[EXPERIMENT_PATH_MAX]) {
  char path[EXPERIMENT_PATH_MAX];
  ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  path[size > 0 ? size : 0] = '\0';
  snprintf(folder, EXPERIMENT_PATH_MAX, "%s", size > 0 ? dirname(path) : ".");
}

static bool is_program(char path[EXPERIMENT_PATH_MAX], const char *format, const char *folder,
                       const char *name) {
  char *resolved = NULL;
  if (format[0] != '\0') {
    snprintf(path, EXPERIMENT_PATH_MAX, "%s%s%s", folder, format, name);
  }
  if (access(path, X_OK) == 0 && (resolved = realpath(path, NULL))) {
    snprintf(path, EXPERIMENT_PATH_MAX, "%s", resolved);
  }
  free(resolved);
  return resolved != NULL;
}

/* As built, beside this program or above it; as installed, with another name; a path as it is; or
 * one of PATH, which stays a name. */
static bool find_program(const char *name, char path[EXPERIMENT_PATH_MAX], char *error) {
  static const char *const places[] = {"/", "/../", "/libcomm-", "/../../../tools/"};
  char folder[EXPERIMENT_PATH_MAX];
  own_folder(folder);
  snprintf(path, EXPERIMENT_PATH_MAX, "%s", name);
  if (strchr(name, '/')) {
    if (is_program(path, "", NULL, NULL)) {
      return true;
    }
    snprintf(error, EXPERIMENT_ERROR_MAX, "the program '%.200s' is not there, or is none", name);
    return false;
  }
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    if (is_program(path, places[i], folder, name)) {
      return true;
    }
  }
  char list[4096], *rest = list;
  snprintf(list, sizeof list, "%s", getenv("PATH") ? getenv("PATH") : "");
  for (char *at = strtok_r(list, ":", &rest); at; at = strtok_r(NULL, ":", &rest)) {
    if (is_program(path, "/", at, name)) {
      return true;
    }
  }
  snprintf(error, EXPERIMENT_ERROR_MAX,
           "the program '%.200s' is neither beside this one nor in PATH; build it with make", name);
  return false;
}

/* ------------------------------------------------------------------- command */

void experiment_command_add(experiment_command *command, const char *word) {
  size_t size = strlen(word) + 1;
  if (command->count == EXPERIMENT_ARGUMENTS_MAX || size > sizeof command->text - command->used) {
    command->broken = true;
    return;
  }
  char *place = command->text + command->used;
  memcpy(place, word, size);
  command->used += size;
  command->words[command->count++] = place;
  command->words[command->count] = NULL;
}

/* Words up to a NULL. */
static void add_words(experiment_command *command, ...) {
  va_list words;
  va_start(words, command);
  for (const char *word; (word = va_arg(words, const char *));) {
    experiment_command_add(command, word);
  }
  va_end(words);
}

void experiment_command_add_printed(experiment_command *command, const char *format, ...) {
  char word[EXPERIMENT_PATH_MAX + 64];
  va_list values;
  va_start(values, format);
  vsnprintf(word, sizeof word, format, values);
  va_end(values);
  experiment_command_add(command, word);
}

const char *experiment_command_show(const experiment_command *command, char *text, size_t size) {
  static const char plain[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:,@%";
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < command->count && used + 8 < size; i++) {
    const char *word = command->words[i];
    bool quoted = word[0] == '\0' || word[strspn(word, plain)] != '\0';
    used += (size_t)snprintf(text + used, size - used, quoted ? "%s'%s'" : "%s%s", i > 0 ? " " : "",
                             word);
  }
  return text;
}

/* ----------------------------------------------------------------- of a case */

experiment_kind experiment_kind_of(const experiment_workload *run) {
  const char *name = strrchr(run->program, '/');
  name = name ? name + 1 : run->program;
  size_t length = strcspn(name, " ");
  if ((length == 5 && strncmp(name, "train", 5) == 0) || strcmp(name, "libcomm-train") == 0) {
    return EXPERIMENT_TRAIN;
  }
  bool perf = length > 5 && strncmp(name + length - 5, "_perf", 5) == 0;
  return perf && name[length] == '\0' ? EXPERIMENT_PERF : EXPERIMENT_COMMAND;
}

/* {policy}, {model}, {seed}, {rate} and {folder} in a word of the options. */
static void add_filled(experiment_command *command, const char *word, const experiment_case *of,
                       const char *folder) {
  char seed[24], filled[EXPERIMENT_PATH_MAX];
  snprintf(seed, sizeof seed, "%llu", (unsigned long long)of->seed);
  const char *const names[][2] = {{"{policy}", of->policy},
                                  {"{model}", of->model},
                                  {"{seed}", seed},
                                  {"{rate}", of->rate},
                                  {"{folder}", folder}};
  size_t used = 0;
  while (*word != '\0' && used + 1 < sizeof filled) {
    size_t i = 0;
    while (i < 5 && strncmp(word, names[i][0], strlen(names[i][0])) != 0) {
      i++;
    }
    if (i < 5) {
      used += (size_t)snprintf(filled + used, sizeof filled - used, "%s", names[i][1]);
      word += strlen(names[i][0]);
    } else {
      filled[used++] = *word++;
    }
  }
  command->broken |= used >= sizeof filled;
  filled[used < sizeof filled ? used : sizeof filled - 1] = '\0';
  experiment_command_add(command, filled);
}

/* Words of the file, with blanks between them; '...' and "..." keep blanks. */
static void add_options(experiment_command *command, const char *options, const experiment_case *of,
                        const char *folder) {
  char word[EXPERIMENT_TEXT_MAX];
  while (*(options += strspn(options, " \t")) != '\0') {
    size_t used = 0;
    for (char quote = '\0'; *options != '\0' && (quote || !strchr(" \t", *options)); options++) {
      if (quote ? *options == quote : *options == '\'' || *options == '"') {
        quote = quote ? '\0' : *options;
      } else {
        word[used++] = *options;
      }
    }
    word[used] = '\0';
    add_filled(command, word, of, folder);
  }
}

bool experiment_command_add_cluster(experiment_command *made, const char *cluster, char *error) {
  char path[EXPERIMENT_PATH_MAX];
  if (!find_program("cluster", path, error)) {
    return false;
  }
  add_words(made, path, "--name", cluster, NULL);
  return true;
}

static bool add_launcher(experiment_command *made, const experiment_case *of, const char *cluster,
                         char *error) {
  int ranks = of->world.hosts * of->world.ranks;
  switch (of->of->where) {
  case EXPERIMENT_CLUSTER:
    if (!experiment_command_add_cluster(made, cluster, error)) {
      return false;
    }
    add_words(made, "run", NULL);
    break;
  case EXPERIMENT_SLURM:
    add_words(made, "srun", "-N", NULL);
    experiment_command_add_printed(made, "%d", of->world.hosts);
    experiment_command_add_printed(made, "--ntasks-per-node=%d", of->world.ranks);
    return true;
  case EXPERIMENT_HOSTS:
    add_words(made, "mpirun", "--hostfile", of->of->hostfile, "--map-by", NULL);
    experiment_command_add_printed(made, "ppr:%d:node", of->world.ranks);
    break;
  case EXPERIMENT_POSE:
    add_words(made, "mpirun", "--oversubscribe", "--bind-to", "none", NULL);
    break;
  }
  if (of->of->where != EXPERIMENT_CLUSTER) {
    add_words(made, "-np", NULL);
    experiment_command_add_printed(made, "%d", ranks);
  }
  if (of->of->where == EXPERIMENT_HOSTS && experiment_kind_of(of->of) == EXPERIMENT_COMMAND) {
    add_words(made, "-x", "LCOMM_POLICY", NULL);
  }
  if (of->of->where == EXPERIMENT_CLUSTER) {
    add_words(made, "--", NULL);
  }
  return true;
}

static void add_known_options(experiment_command *made, const experiment_case *of,
                              const char *folder) {
  experiment_kind kind = experiment_kind_of(of->of);
  const char *interface = of->of->where == EXPERIMENT_CLUSTER ? "eth0" : of->of->interface;
  if (kind == EXPERIMENT_TRAIN) {
    add_words(made, "--policy", of->policy, "--seed", NULL);
    experiment_command_add_printed(made, "%llu", (unsigned long long)of->seed);
    add_words(made, "--log", NULL);
    experiment_command_add_printed(made, "%s/results.jsonl", folder);
    if (of->model[0] != '\0') {
      add_words(made, "--model", of->model, NULL);
    }
  }
  if (kind == EXPERIMENT_PERF) {
    add_words(made, "-p", of->policy, "--json", NULL);
    experiment_command_add_printed(made, "%s/results.jsonl", folder);
    if (interface[0] != '\0') {
      add_words(made, "--interface", interface, NULL);
    }
  }
}

bool experiment_command_make(const experiment_case *of, const char *folder, const char *cluster,
                             experiment_command *made, char *error) {
  char path[EXPERIMENT_PATH_MAX], name[EXPERIMENT_TEXT_MAX];
  size_t length = strcspn(of->of->program, " \t");
  *made = (experiment_command){.count = 0};
  snprintf(name, sizeof name, "%.*s", (int)length, of->of->program);
  if (!find_program(name, path, error) || !add_launcher(made, of, cluster, error)) {
    return false;
  }
  experiment_command_add(made, path);
  add_options(made, of->of->program + length, of, folder);
  add_known_options(made, of, folder);
  add_options(made, of->of->options, of, folder);
  if (made->broken) {
    snprintf(error, EXPERIMENT_ERROR_MAX, "the command of run %s is too long", of->of->name);
  }
  return !made->broken;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/experiment/experiment_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/experiment/experiment_values.h"

enum { LINE_SIZE = 2048, FILE_SIZE_MAX = 64 << 10, SECTION_NONE = -2, SECTION_EXPERIMENT = -1 };

typedef struct reader {
  experiment_file *made;
  int section;  /* index of a workload, or SECTION_ */
  int line;     /* that is read, from 1 */
  bool titled;  /* the section [experiment] was there */
  uint32_t had; /* keys of this section, by their place in its table */
  char *error;
} reader;

static bool refuse(const reader *of, const char *what, const char *word, const char *expected) {
  char visible[96];
  size_t used = 0;
  for (; *word != '\0' && used + 1 < sizeof visible; word++) {
    visible[used++] = isprint((unsigned char)*word) ? *word : '?';
  }
  visible[used] = '\0';
  snprintf(of->error, EXPERIMENT_ERROR_MAX, "line %d: %s '%s'; expected %s", of->line, what,
           visible, expected);
  return false;
}

/* --------------------------------------------------------------------- keys */

typedef bool value_reader(const char *value, void *member);

typedef struct known_key {
  const char *name;
  value_reader *read;
  size_t member;
  const char *expected;
} known_key;

#define OF_FILE(member) offsetof(experiment_file, member)
static const known_key file_keys[] = {
    {"title", experiment_read_text, OF_FILE(title), "a line of text"},
    {"seed", experiment_read_seed, OF_FILE(seed), "a whole number"},
    {"limit", experiment_read_seconds, OF_FILE(limit_s), "a time up to a day, such as 90s or 10m"},
    {"accuracy", experiment_read_share, OF_FILE(accuracy), "a share such as 80%"},
    {NULL, NULL, 0, NULL}};

#define OF_RUN(member) offsetof(experiment_workload, member)
static const known_key run_keys[] = {
    {"program", experiment_read_text, OF_RUN(program), "train, allreduce_perf or a command"},
    {"options", experiment_read_text, OF_RUN(options), "arguments of the program"},
    {"where", experiment_read_where, OF_RUN(where), "cluster, pose, hosts or slurm"},
    {"hostfile", experiment_read_text, OF_RUN(hostfile), "the path of a hostfile"},
    {"interface", experiment_read_name, OF_RUN(interface), "a network device such as eth0"},
    {"policies", experiment_read_policies, OF_RUN(policies),
     "up to 16 policies with | between them, such as exact | net=int8"},
    {"rates", experiment_read_rates, OF_RUN(rates), "up to 16 rates such as 50mbit, 1gbit"},
    {"delays", experiment_read_delays, OF_RUN(delays_ms), "up to 16 times such as 0ms, 20ms"},
    {"worlds", experiment_read_worlds, OF_RUN(world_count),
     "up to 16 of HOSTSxRANKS such as 2x1, 4x2"},
    {"models", experiment_read_names, OF_RUN(models), "up to 16 names such as mlp, cnn"},
    {"seeds", experiment_read_seeds, OF_RUN(seeds), "up to 16 whole numbers such as 1, 2, 3"},
    {"repetitions", experiment_read_repetitions, OF_RUN(repetitions), "a number from 1 to 100"},
    {NULL, NULL, 0, NULL}};

static const char *names_of(const known_key *keys, char *text, size_t size) {
  size_t used = 0;
  for (; keys->name; keys++) {
    used +=
        (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "one of ", keys->name);
  }
  return text;
}

static bool read_key(reader *of, const char *key, const char *value) {
  char names[256];
  const known_key *keys = of->section == SECTION_EXPERIMENT ? file_keys : run_keys;
  char *target = of->section == SECTION_EXPERIMENT ? (char *)of->made
                                                   : (char *)&of->made->workloads[of->section];
  size_t i = 0;
  while (keys[i].name && strcmp(keys[i].name, key) != 0) {
    i++;
  }
  if (!keys[i].name) {
    return refuse(of, "there is no key", key, names_of(keys, names, sizeof names));
  }
  if (of->had & UINT32_C(1) << i) {
    return refuse(of, "a second time", key, "each key once in a section");
  }
  of->had |= UINT32_C(1) << i;
  return keys[i].read(value, target + keys[i].member) ||
         refuse(of, "the value is", value, keys[i].expected);
}

/* ----------------------------------------------------------------- sections */

/* What a workload lacks, when its section ends. */
static bool finish_section(reader *of) {
  if (of->section < 0) {
    return true;
  }
  experiment_workload *run = &of->made->workloads[of->section];
  bool shaped = run->where == EXPERIMENT_CLUSTER;
  if (run->program[0] == '\0') {
    return refuse(of, "no program in section", run->name, "program = train, or another");
  }
  if (!shaped && (run->rates.words[0][0] != '\0' || run->delays_ms.numbers[0] > 0.0)) {
    return refuse(of, "rates or delays in section", run->name, "them only where = cluster");
  }
  if (shaped && run->rates.words[0][0] == '\0') {
    return refuse(of, "no rates in section", run->name, "rates = 50mbit, 1gbit");
  }
  if (run->where == EXPERIMENT_HOSTS && run->hostfile[0] == '\0') {
    return refuse(of, "no hostfile in section", run->name, "hostfile = FILE where = hosts");
  }
  return true;
}

static bool begin_workload(reader *of, const char *name) {
  experiment_file *made = of->made;
  if (made->workload_count == EXPERIMENT_WORKLOADS_MAX) {
    return refuse(of, "too many sections, with", name, "up to 8 runs");
  }
  for (size_t i = 0; i < made->workload_count; i++) {
    if (strcmp(made->workloads[i].name, name) == 0) {
      return refuse(of, "a second section", name, "another name");
    }
  }
  experiment_workload *run = &made->workloads[made->workload_count];
  if (!experiment_read_name(name, run->name)) {
    return refuse(of, "a section is named", name, "letters, digits and _, up to 31");
  }
  run->line = of->line;
  run->repetitions = 1;
  run->policies.count = run->rates.count = run->models.count = run->world_count = 1;
  run->delays_ms = run->seeds = (experiment_numbers){.count = 1};
  run->seeds.numbers[0] = 1.0;
  run->worlds[0] = (experiment_world){2, 1};
  of->section = (int)made->workload_count++;
  return true;
}

static bool begin_section(reader *of, char *name) {
  if (!finish_section(of)) {
    return false;
  }
  of->had = 0;
  if (strcmp(name, "experiment") == 0 && !of->titled) {
    of->section = SECTION_EXPERIMENT;
    of->titled = true;
    return true;
  }
  if (strncmp(name, "run ", 4) == 0) {
    return begin_workload(of, name + 4 + strspn(name + 4, " \t"));
  }
  return refuse(of, "there is no section", name, "[experiment], once, or [run NAME]");
}

/* -------------------------------------------------------------------- lines */

static bool read_line(reader *of, char *line) {
  char *text = experiment_trim(line), *equals = strchr(text, '=');
  size_t length = strlen(text);
  if (length == 0 || text[0] == '#' || text[0] == ';') {
    return true;
  }
  if (text[0] == '[') {
    if (text[length - 1] != ']') {
      return refuse(of, "a section does not end:", text, "a ] at the end of the line");
    }
    text[length - 1] = '\0';
    return begin_section(of, experiment_trim(text + 1));
  }
  if (!equals) {
    return refuse(of, "this is no line of an experiment:", text, "key = value, or [SECTION]");
  }
  *equals = '\0';
  if (of->section == SECTION_NONE) {
    return refuse(of, "before the first section stands the key", experiment_trim(text),
                  "[experiment]");
  }
  return read_key(of, experiment_trim(text), experiment_trim(equals + 1));
}

static bool read_lines(reader *of, const char *text, size_t size) {
  char line[LINE_SIZE];
  for (size_t at = 0; at < size;) {
    const char *end = memchr(text + at, '\n', size - at);
    size_t length = end ? (size_t)(end - text) - at : size - at;
    of->line++;
    if (length >= sizeof line || memchr(text + at, '\0', length)) {
      return refuse(of, "this line is", length >= sizeof line ? "too long" : "binary",
                    "text of up to 2047 bytes");
    }
    memcpy(line, text + at, length);
    line[length] = '\0';
    if (!read_line(of, line)) {
      return false;
    }
    at += length + 1;
  }
  return finish_section(of);
}

/* -------------------------------------------------------------------- files */

static size_t count_cases(const experiment_file *of) {
  size_t sum = 0;
  for (size_t i = 0; i < of->workload_count; i++) {
    const experiment_workload *run = &of->workloads[i];
    sum += run->policies.count * run->rates.count * run->delays_ms.count * run->world_count *
           run->models.count * run->seeds.count * (size_t)run->repetitions;
  }
  return sum;
}

bool experiment_file_parse(const char *text, size_t size, experiment_file *made, char *error) {
  reader of = {.made = made, .section = SECTION_NONE, .error = error};
  memset(made, 0, sizeof *made);
  made->seed = 1;
  made->limit_s = 120.0;
  error[0] = '\0';
  if (!read_lines(&of, text, size)) {
    return false;
  }
  if (made->workload_count == 0) {
    return refuse(&of, "at the end there is", "nothing to run", "a section [run NAME]");
  }
  if (count_cases(made) > EXPERIMENT_CASES_MAX) {
    return refuse(&of, "the lists make", "more than 4096 runs", "fewer");
  }
  return true;
}

bool experiment_file_read(const char *path, experiment_file *made, char *error) {
  char sentence[EXPERIMENT_ERROR_MAX] = "";
  char *text = malloc(FILE_SIZE_MAX + 1);
  FILE *file = fopen(path, "re");
  size_t size = file && text ? fread(text, 1, FILE_SIZE_MAX + 1, file) : 0;
  bool good = false;
  if (!file || ferror(file)) {
    snprintf(sentence, sizeof sentence, "cannot be read: %s", strerror(errno));
  } else if (!text || size > FILE_SIZE_MAX) {
    snprintf(sentence, sizeof sentence, "is larger than 64 KiB, which no experiment is");
  } else {
    good = experiment_file_parse(text, size, made, sentence);
  }
  if (file) {
    fclose(file);
  }
  free(text);
  error[0] = '\0';
  if (!good) {
    snprintf(error, EXPERIMENT_ERROR_MAX, "%.160s: %.330s", path, sentence);
  }
  return good;
}

const char *experiment_where_name(experiment_where where) {
  static const char *const names[] = {"cluster", "pose", "hosts", "slurm"};
  return names[where];
}

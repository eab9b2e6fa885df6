/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_FILE_H
#define LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_FILE_H

/* The file of an experiment: sections, and in them lines `key = value`; # and ; begin a comment
 * where a line begins. One section [experiment], and one [run NAME] for each thing that is run.
 * README.md of tools/experiments has all keys. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  EXPERIMENT_NAME_MAX = 32,
  EXPERIMENT_WORD_MAX = 160, /* a policy, a rate, a model */
  EXPERIMENT_TEXT_MAX = 512, /* a title, a command */
  EXPERIMENT_LIST_MAX = 16,
  EXPERIMENT_WORKLOADS_MAX = 8,
  EXPERIMENT_CASES_MAX = 4096,
  EXPERIMENT_ERROR_MAX = 512
};

typedef enum experiment_where {
  EXPERIMENT_CLUSTER, /* emulated hosts, with links of a rate */
  EXPERIMENT_POSE,    /* ranks of this machine that pose as nodes */
  EXPERIMENT_HOSTS,   /* the hosts of a hostfile */
  EXPERIMENT_SLURM    /* an allocation of Slurm */
} experiment_where;

typedef struct experiment_words {
  size_t count;
  char words[EXPERIMENT_LIST_MAX][EXPERIMENT_WORD_MAX];
} experiment_words;

typedef struct experiment_numbers {
  size_t count;
  double numbers[EXPERIMENT_LIST_MAX];
} experiment_numbers;

typedef struct experiment_world {
  int hosts, ranks; /* ranks on each host */
} experiment_world;

/* A section [run NAME]. Lists have at least one member: a rate "" is one that is not limited. */
typedef struct experiment_workload {
  char name[EXPERIMENT_NAME_MAX];
  int line; /* of the section */
  char program[EXPERIMENT_TEXT_MAX];
  char options[EXPERIMENT_TEXT_MAX];
  char hostfile[EXPERIMENT_TEXT_MAX];
  char interface[EXPERIMENT_NAME_MAX];
  experiment_where where;
  experiment_words policies, rates, models;
  experiment_numbers delays_ms, seeds;
  size_t world_count;
  experiment_world worlds[EXPERIMENT_LIST_MAX];
  int repetitions;
} experiment_workload;

typedef struct experiment_file {
  char title[EXPERIMENT_TEXT_MAX];
  uint64_t seed;   /* of the order of runs */
  double limit_s;  /* a run that takes longer is ended */
  double accuracy; /* that time to accuracy is about, 0 to 1; 0: not asked for */
  size_t workload_count;
  experiment_workload workloads[EXPERIMENT_WORKLOADS_MAX];
} experiment_file;

/* Read `size` bytes. false: `error` (EXPERIMENT_ERROR_MAX bytes) says what is wrong and in which
 * line, beginning with "line N: ". */
bool experiment_file_parse(const char *text, size_t size, experiment_file *made, char *error);

/* The same of a file; the sentence begins with its path. */
bool experiment_file_read(const char *path, experiment_file *made, char *error);

const char *experiment_where_name(experiment_where where);

#endif

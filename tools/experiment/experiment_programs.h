/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_PROGRAMS_H
#define LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_PROGRAMS_H

/* Where programs are, and the command lines that start them. */

#include <stdbool.h>
#include <stddef.h>

#include "tools/experiment/experiment_matrix.h"

enum { EXPERIMENT_PATH_MAX = 1024, EXPERIMENT_ARGUMENTS_MAX = 160 };

/* What a program writes its results into. */
typedef enum experiment_kind {
  EXPERIMENT_TRAIN,  /* the log of the trainer */
  EXPERIMENT_PERF,   /* the JSON document of a perf tool */
  EXPERIMENT_COMMAND /* lines of JSON on its standard output */
} experiment_kind;

experiment_kind experiment_kind_of(const experiment_workload *run);

/* A command line; its words lie in `text`. */
typedef struct experiment_command {
  int count;
  char *words[EXPERIMENT_ARGUMENTS_MAX + 1]; /* ended by NULL */
  size_t used;
  char text[8192];
  bool broken; /* it did not fit */
} experiment_command;

void experiment_command_add(experiment_command *command, const char *word);

/* A word as printf makes it. */
__attribute__((format(printf, 2, 3))) void
experiment_command_add_printed(experiment_command *command, const char *format, ...);

/* As a shell would take it, for people. Returns text. */
const char *experiment_command_show(const experiment_command *command, char *text, size_t size);

/* What runs this case and leaves its results in `folder`, on the emulated cluster of that name
 * where it is one. false with a sentence when the program is nowhere, or the command is too
 * long. */
bool experiment_command_make(const experiment_case *of, const char *folder, const char *cluster,
                             experiment_command *made, char *error);

/* tools/cluster --name CLUSTER, before its command. false: it is nowhere. */
bool experiment_command_add_cluster(experiment_command *made, const char *cluster, char *error);

#endif

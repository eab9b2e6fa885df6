/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_PROCESS_H
#define LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_PROCESS_H

/* One process at a time, in a group of its own, that ends when its time is up. */

#include <stdbool.h>

typedef struct experiment_process {
  char *const *command;   /* ended by NULL */
  const char *out, *err;  /* files for what it prints */
  const char *const *set; /* NAME=VALUE for its environment, ended by NULL; NULL: nothing */
  double limit_s;
} experiment_process;

typedef enum experiment_how {
  EXPERIMENT_EXITED,  /* with `code` */
  EXPERIMENT_KILLED,  /* by signal `code` */
  EXPERIMENT_LATE,    /* it took longer than its limit, and was ended */
  EXPERIMENT_STOPPED, /* the user wants no more (SIGINT, SIGTERM); it was ended */
  EXPERIMENT_NO_START /* `code` is errno */
} experiment_how;

typedef struct experiment_outcome {
  experiment_how end;
  int code;
  double seconds;
} experiment_outcome;

/* From now on SIGINT and SIGTERM end the process that runs, and none begins any more. */
void experiment_process_watch(void);
bool experiment_process_is_stopped(void);

/* Start it and wait for its end; `tick` is called now and then. A process that does not end on
 * SIGTERM is killed after some seconds, with all of its group. */
experiment_outcome experiment_process_run(const experiment_process *of, void (*tick)(void *),
                                          void *context);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_LAUNCH_JOB_H
#define LCOMM_TOOLS_LAUNCH_JOB_H

#include "tools/launching/launch_rank.h"

/* All ranks, from the first start to the last end. */

/* What follows when a rank is lost, that is, ends with another status than 0. */
typedef enum launch_loss {
  LAUNCH_ENDS,   /* the others are ended, too */
  LAUNCH_GOES_ON /* they go on */
} launch_loss;

/* What is to be run. */
typedef struct launch_order {
  int size;
  const launch_place *places; /* [size] */
  char *const *program;
  launch_loss on_loss;
  int restarts; /* ranks that are started anew when they are lost, at most, and join the others */
  int port;     /* of this machine, at which they join; 0: elsewhere */
} launch_order;

typedef struct launch_job {
  const launch_order *order;
  launch_rank *ranks;
  char *hosts;  /* at which ranks join */
  int restarts; /* that are left */
  int running;  /* ranks that have not ended */
  int signals;  /* a descriptor that tells of signals */
  int asked;    /* a signal came to the launcher and was passed on; 0: none */
  bool ending;  /* the ranks are being ended */
  double kill_at_s;
  int status;
} launch_job;

/* Start the ranks, pass on what they write and the signals that come, until all
 * have ended. Whatever ends the launcher ends them, too. Returns the exit status. */
int launch_job_run(const launch_order *order);

#endif

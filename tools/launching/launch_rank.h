/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_LAUNCH_RANK_H
#define LCOMM_TOOLS_LAUNCH_RANK_H

#include <sys/types.h>

#include "tools/launching/launch_lines.h"
#include "tools/launching/launch_places.h"

/* One rank: its process here, or the ssh that has started it on another host. It is the leader of a
 * process group, so what it starts ends with it. */

enum { LAUNCH_WORDS_SIZE = 512 }; /* of a sentence about a rank */

typedef struct launch_rank {
  int number;
  const launch_place *place;
  char *const *program; /* with its arguments; NULL ends it */
  const char *joins; /* hosts at which it joins the others, as MASTER_ADDR; NULL: it is there from
                      * the beginning */
  pid_t process;     /* 0: it has ended */
  int control;       /* of another host: what is written there comes to the rank's host; else -1 */
  launch_lines out, err;
  int status; /* as a shell has it: 128 + N after signal N. Valid when it has ended */
} launch_rank;

/* Start it; what all ranks have in common is in the environment. LOCAL_RANK and the like are set
 * here. Returns 0, or -1 with a sentence in error[size]. */
int launch_rank_start(launch_rank *self, char *error, size_t size);

/* Send a signal to the rank and to what it has started. */
void launch_rank_signal(const launch_rank *self, int number);

/* The end without mercy, for the ssh of another host, too. */
void launch_rank_kill(launch_rank *self);

/* Has it ended? Then what it has started is killed, what it has written is passed on, and its
 * status is there. */
bool launch_rank_has_ended(launch_rank *self);

/* "rank 2 (host node1) was ended by signal 9 (Killed)" */
void launch_rank_describe(const launch_rank *self, char text[LAUNCH_WORDS_SIZE]);

#endif

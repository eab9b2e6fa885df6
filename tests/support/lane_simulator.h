/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_LANE_SIMULATOR_H
#define LCOMM_TESTS_LANE_SIMULATOR_H

/* Do schedules end when each rank does its computations in lanes, one after the other in program
 * order, each lane waiting at an entry for all that this one needs? Nothing is computed here; what
 * waits for what is followed until nothing moves. Messages are moved by someone who waits for
 * nothing: they begin when all they depend on is over, in any order.
 *
 * An operation begins with an entry in the ENCODE lane (stage in) and ends with one in the DECODE
 * lane (stage out). Operations that share a track share memory: the later one stages in, and
 * receives, when the earlier one is over on that rank. */

#include "tests/support/simulator.h"

typedef enum lane_messages {
  LANE_MESSAGES_EAGER,      /* a SEND is over when it has begun */
  LANE_MESSAGES_RENDEZVOUS, /* ... when the RECV has begun, too */
  LANE_MESSAGES_IN_PLACE,   /* inside a node, when all that reads it there is over: where no reader
                               depends on a SEND, as in engine/run_slots.c */
  LANE_MESSAGES_GATES /* likewise, as devices read it (engine/DEVICES.md): lanes wait for lanes
                         of their node at gates, and messages follow behind */
} lane_messages;

typedef struct lane_options {
  int lanes; /* 1: all in one; else LCOMM_LANE_COUNT */
  lane_messages messages;
  bool plain;        /* stages are plain copies, so slots may be parts of the vector */
  bool merged;       /* groups of computations (libcomm/sched/lane_group.h) are one entry */
  int operations;    /* in flight, one after the other in the lanes */
  int tracks;        /* at least 1 */
  int far_sends_max; /* between nodes, in flight at once per rank and operation; 0: any number */
  unsigned seed;     /* of the order in which what can move moves */
} lane_options;

/* Links the schedules of the world, which fit together, and follows them. 0, or -1 with a sentence
 * in why: who waits for whom. */
int lanes_run(sim_world *world, const lane_options *options, char *why, size_t size);

#endif

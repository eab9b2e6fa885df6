/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SIMULATOR_H
#define LCOMM_TESTS_SIMULATOR_H

/* All ranks of one collective in one process. Every element carries which
 * ranks it has collected, and how often, and a value; lossy stages round the value when
 * they encode. Steps run in random order as far as the linker allows, and
 * messages are eager (copied when sent) or rendezvous (read from the slot
 * only when both sides are there), so a missing dependency shows. */

#include "libcomm/sched/builders.h"

/* Of so many ranks each is a bit, of more each a number of 64 random bits. */
enum { SIM_RANKS_OF_BITS = 64 };

typedef struct sim_element {
  uint64_t ranks; /* the sum of what stands for each rank that is part of the element */
  double value;
} sim_element;

typedef struct sim_options {
  unsigned seed;
  bool rendezvous;
  bool lossy[LCOMM_STAGE_COUNT]; /* the others are plain copies, aliased */
  int far_sends_max;             /* between nodes, in flight at once per rank; 0: any number */
  int held_rank;                 /* does nothing until all others are stuck or over; -1: none */
  uint32_t lost_tie;             /* forget this dependency of rank 0, counted from 1; 0: none */
} sim_options;

typedef struct sim_world {
  int size;
  lcomm_topo topo;
  lcomm_schedule *schedules; /* linked by sim_run */
  sim_element **vectors;     /* per rank, schedule count elements */
  uint64_t far_elements;     /* elements sent between nodes */
  int over_before_held;      /* ranks that were over before the held one began */
} sim_world;

/* A world of nodes with the given numbers of ranks. 0 on success. */
int sim_world_make(sim_world *world, const int *node_sizes, int nodes);
/* The same, but neighbours in rank are on different nodes: the first rank of each, the second, ...
 */
int sim_world_make_in_turn(sim_world *world, const int *node_sizes, int nodes);
void sim_world_free(sim_world *world);

/* Its nodes are in racks: racks[node], from 1. 0 on success. */
int sim_world_put_into_racks(sim_world *world, const int *racks);

/* What stands for a rank. */
uint64_t sim_token(const sim_world *world, int rank);

/* Give rank r at element i the set {r} and a value that no rounding keeps. */
void sim_fill_contributions(sim_world *world);

/* Give rank r at element i the set {r} and a value that only this element has. */
void sim_fill_labels(sim_world *world);
double sim_label(int rank, uint64_t index);

/* All ranks, once each. */
uint64_t sim_everyone(const sim_world *world);

/* Link and run. Returns 0, or -1 with a sentence in why: a deadlock, a slot
 * read before it was written, an element counted twice, a lost message, links
 * that differ from the reference's (reference_linker.h). */
int sim_run(sim_world *world, const sim_options *options, char *why, size_t size);

/* Every element of every rank holds all ranks, and all ranks are bitwise
 * equal. Returns 0, or -1 with a sentence in why. */
int sim_check_allreduce(const sim_world *world, char *why, size_t size);

/* Element `index` of `rank` is now what sim_fill_labels gave rank `from` at
 * element `there`. Returns 0, or -1 with a sentence in why. */
int sim_check_moved(const sim_world *world, int rank, uint64_t index, int from, uint64_t there,
                    char *why, size_t size);

#endif

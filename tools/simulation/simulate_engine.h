/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_ENGINE_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_ENGINE_H

/* Training steps of a world, event by event. README.md of this folder has the model. */

#include "tools/simulation/simulate_timeline.h"
#include "tools/simulation/simulate_world.h"

enum { SIMULATE_STEPS_MAX = 1000 };

typedef struct simulate_settings {
  simulate_link links[LCOMM_LINK_COUNT]; /* by class */
  simulate_link served; /* between nodes, the ports of servers; of rate 0: as the others */
  int cards;            /* network cards of a node, its ranks are dealt out to them */
  int processors;   /* of a node, for all its ranks and their backward passes; 0: each rank has one
                     * for communication, and computes elsewhere */
  bool one_machine; /* the nodes share these processors */
  double cache;     /* bytes of the cache that these processors share; 0: none is modelled */
  bool fills;       /* a copy into the tensors instead of a backward pass */
  int steps;
} simulate_settings;

typedef struct simulate_result {
  double step_s;          /* of the first step; of several, the median of all but the first */
  double compute_s;       /* of a step */
  double communication_s; /* of a step: some bucket of the first worker is on its way */
  double hidden;          /* share of that while the step computes */
  double busy;            /* share of the step in which its processor works for communication */
  double card_bytes;      /* a card sends in a step, on the wire; the one that sends most */
  double card_messages;   /* likewise */
  double node_bytes;      /* payloads and headers that a node sends to others */
  double rank_messages;   /* a rank sends in a step, on all links; the one that sends most */
  double wire_s;          /* what a card sends at its rate; the longest */
  uint64_t memory_bytes;  /* of a rank, besides gradients: slots, residuals, vectors of buckets */
  uint64_t events;        /* simulated */
  int simulated_ranks;
} simulate_result;

/* timeline: NULL or one to fill. false with a sentence in `why` (SIMULATE_WHY_MAX bytes): memory
 * ended, or ranks wait for each other for ever. */
bool simulate_engine_run(const simulate_world *world, const simulate_workload *workload,
                         const simulate_settings *settings, simulate_timeline *timeline,
                         simulate_result *result, char *why);

#endif
